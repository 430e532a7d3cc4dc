package plan

import (
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// objectsIn are the objects of a manifest.
func objectsIn(t *testing.T, manifest []byte) []object {
	t.Helper()
	objects, err := decodeManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// objectsOf are the objects of a value of a graph's only step, by kind and name.
func objectsOf(t *testing.T, g *graph.Graph, value string) map[string]object {
	t.Helper()
	if len(g.Steps) != 1 {
		t.Fatalf("planned %q", refs(g))
	}
	list := objectsIn(t, []byte(g.Steps[0].Input.Values[value]))
	out := map[string]object{}
	for _, o := range list {
		meta := o["metadata"].(object)
		out[o["kind"].(string)+" "+meta["name"].(string)] = o
		if labels, _ := meta["labels"].(object); labels["app.kubernetes.io/managed-by"] != "kgpu" {
			t.Errorf("%s is not marked as kgpu's", meta["name"])
		}
	}
	return out
}

func TestCreateUser(t *testing.T) {
	user := User{Name: "joe", Namespace: "lab", Role: "edit", Request: []byte("THE-REQUEST"), Lifetime: 48 * time.Hour}
	for _, c := range []struct {
		minor              int
		request, rights    string
		signer, end, label any
	}{
		{36, "certificates.k8s.io/v1", "rbac.authorization.k8s.io/v1", "kubernetes.io/kube-apiserver-client", 172800, "baseline"},
		{19, "certificates.k8s.io/v1", "rbac.authorization.k8s.io/v1", "kubernetes.io/kube-apiserver-client", nil, nil},
		{18, "certificates.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1", nil, nil, nil},
		{6, "certificates.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1beta1", nil, nil, nil},
	} {
		inv := decode(t, threeHosts)
		inv.Kubernetes.Version = inventory.Version{Major: 1, Minor: c.minor}
		g, err := CreateUser(inv, hostFacts(inv), user)
		if err != nil {
			t.Fatal(err)
		}
		request := objectsOf(t, g, "request")["CertificateSigningRequest kgpu-user-joe"]
		spec := request["spec"].(object)
		if request["apiVersion"] != c.request || spec["signerName"] != c.signer || spec["expirationSeconds"] != c.end || spec["request"] != "VEhFLVJFUVVFU1Q=" {
			t.Errorf("1.%d: request %v", c.minor, request)
		}
		rights := objectsOf(t, g, "manifest")
		binding := rights["RoleBinding kgpu-user-joe"]
		if binding["apiVersion"] != c.rights || binding["metadata"].(object)["namespace"] != "lab" || binding["roleRef"].(object)["name"] != "edit" ||
			binding["subjects"].([]any)[0].(object)["name"] != "joe" || len(binding["subjects"].([]any)) != 1 {
			t.Errorf("1.%d: %v", c.minor, binding)
		}
		nodes := rights["ClusterRoleBinding kgpu:nodes-view:joe"]
		if nodes["roleRef"].(object)["name"] != "kgpu:nodes-view" || nodes["subjects"].([]any)[0].(object)["kind"] != "User" {
			t.Errorf("1.%d: %v", c.minor, nodes)
		}
		if rules := rights["ClusterRole kgpu:nodes-view"]["rules"].([]any); len(rules) != 1 || len(rules[0].(object)["resources"].([]any)) != 1 {
			t.Errorf("1.%d: everybody may see %v", c.minor, rules)
		}
		labels := objectsOf(t, g, "namespaceObject")["Namespace lab"]["metadata"].(object)["labels"].(object)
		if labels["pod-security.kubernetes.io/enforce"] != c.label {
			t.Errorf("1.%d: the namespace has %v", c.minor, labels)
		}
	}
}

// Pods of a user take no priority of the system's, where quotas can say so, and as many cards as somebody said.
func TestLimitsOfUsers(t *testing.T) {
	cards := 2
	for minor, limits := range map[int]bool{36: true, 17: true, 16: false} {
		inv := decode(t, threeHosts)
		inv.Kubernetes.Version = inventory.Version{Major: 1, Minor: minor}
		g, err := CreateUser(inv, hostFacts(inv), User{Name: "joe", Namespace: "lab", Role: "edit", GPUs: &cards})
		if err != nil {
			t.Fatal(err)
		}
		if values := g.Steps[0].Input.Values; values["gpus"] != "2" || (values["limits"] != "") != limits {
			t.Errorf("1.%d: %v", minor, values)
		}
		if !limits {
			continue
		}
		quota := objectsOf(t, g, "limits")["ResourceQuota kgpu-no-system-priority"]
		scope := quota["spec"].(object)["scopeSelector"].(object)["matchExpressions"].([]any)[0].(object)
		if quota["metadata"].(object)["namespace"] != "lab" || quota["spec"].(object)["hard"].(object)["pods"] != 0 || scope["scopeName"] != "PriorityClass" || len(scope["values"].([]any)) != 2 {
			t.Errorf("1.%d: %v", minor, quota)
		}
	}
	bad := -1
	if err := (User{Name: "joe", Namespace: "lab", Role: "edit", GPUs: &bad}).Valid(); err == nil {
		t.Error("fewer cards than none")
	}
}

// The dashboard cannot be reached from outside, has no rights of its own, and an administrator only where one is wanted.
func TestDashboard(t *testing.T) {
	inv := decode(t, threeHosts+"images: {registry: reg.lan:5000/k8s}\n")
	for _, admin := range []bool{false, true} {
		g, err := Dashboard(inv, hostFacts(inv), admin)
		if err != nil {
			t.Fatal(err)
		}
		all := objectsOf(t, g, "manifest")
		for name, o := range all {
			switch o["kind"] {
			case "Service":
				if spec := o["spec"].(object); spec["type"] != "ClusterIP" || spec["externalIPs"] != nil {
					t.Errorf("%s: %v", name, spec)
				}
			case "ClusterRoleBinding":
				subject := o["subjects"].([]any)[0].(object)["name"]
				if subject == "headlamp" || subject == "default" || o["roleRef"].(object)["name"] == "cluster-admin" && !admin {
					t.Errorf("%s: %v", name, o)
				}
			case "Deployment":
				pod := o["spec"].(object)["template"].(object)["spec"].(object)
				if pod["serviceAccountName"] != "headlamp" || pod["hostNetwork"] != nil {
					t.Errorf("%v", pod)
				}
				if image := pod["containers"].([]any)[0].(object)["image"]; image != "reg.lan:5000/k8s/headlamp-k8s/headlamp:v0.45.0" {
					t.Errorf("image %v", image)
				}
			}
		}
		if _, there := all["ServiceAccount admin"]; there != admin {
			t.Errorf("admin %t: an account is there: %t", admin, there)
		}
		if all["ServiceAccount viewer"] == nil || strings.Contains(g.Steps[0].Input.Values["manifest"], "NodePort") {
			t.Error("no viewer, or a port of the nodes")
		}
	}
	if g, err := RemoveDashboard(inv, hostFacts(inv)); err != nil || g.Steps[0].Script != "addon-remove" {
		t.Error(err)
	}
}
