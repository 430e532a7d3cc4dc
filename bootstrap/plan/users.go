package plan

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// User is somebody who may work in a namespace of the cluster, and not rule it.
type User struct {
	Name      string
	Namespace string
	Role      string        // ClusterRole of the rights in the namespace: view, edit or admin
	Request   []byte        // certificate signing request, PEM
	Lifetime  time.Duration // of the certificate, as far as the cluster heeds it
	GPUs      *int          // cards, of each kind that nodes offer, that pods of the namespace may have at once; nil: as it is
}

// UsersGroup is the group that is in the certificates of users. kgpu gives it no rights.
const UsersGroup = "kgpu:users"

// Outputs of the steps.
const (
	OutputCertificate = "certificate" // of the user, PEM
	OutputEnforced    = "enforced"    // Pod Security Standard of the namespace; empty: none
	OutputFound       = "found"       // something that led a user to rights; empty: there is no such user
	OutputNamespaces  = "namespaces"  // in which they had rights, a line each
	OutputEnd         = "end"         // of their certificates, as openssl prints it, a line each; where it is known
	OutputMay         = "may"         // what they still may: namespace, tab, rule of kubectl auth can-i --list
	OutputBindings    = "bindings"    // bindings that lead others there, too: arguments of kubectl, a line each
	OutputAccounts    = "accounts"    // NAMESPACE/NAME of ServiceAccounts with rights whose tokens they may have
	OutputPods        = "pods"        // NAMESPACE/NAME of those that run in namespaces of theirs alone
)

// userLabel names the user of an object.
const userLabel = "kgpu.dev/user"

// managed marks the objects that kgpu makes on request.
var managed = object{"app.kubernetes.io/managed-by": "kgpu"}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Valid reports what is wrong with the user; nil: nothing. A namespace of the system's would lead to its rights.
func (u User) Valid() error {
	for what, name := range map[string]string{"a user's name": u.Name, "a namespace": u.Namespace} {
		if !dnsLabel.MatchString(name) {
			return fmt.Errorf("%s is at most 63 lower-case letters, digits and hyphens, and begins and ends with a letter or a digit: not %q", what, name)
		}
	}
	for _, system := range []string{"kube-", "kgpu-"} {
		if strings.HasPrefix(u.Namespace, system) {
			return fmt.Errorf("%s is a namespace of the cluster itself: who works in it could take it over; choose another with --namespace", u.Namespace)
		}
	}
	if u.GPUs != nil && *u.GPUs < 0 {
		return fmt.Errorf("a number of cards is 0 or more, not %d", *u.GPUs)
	}
	switch u.Role {
	case "view", "edit", "admin":
		return nil
	}
	return fmt.Errorf("a role is view, edit or admin, not %q", u.Role)
}

// NamespacesRefusePods reports whether namespaces of the inventory's Kubernetes can refuse pods that would rule their node.
func NamespacesRefusePods(inv *inventory.Inventory) bool {
	return inv.Kubernetes.Version.Minor >= podSecuritySince
}

// HeedsLifetime reports whether the inventory's Kubernetes lets a request say how long its certificate shall be valid.
func HeedsLifetime(inv *inventory.Inventory) bool {
	return inv.Kubernetes.Version.Minor >= expirationSince
}

// Minors since which there is what users need.
const (
	podSecuritySince = 23 // Pod Security admission, on by default: https://kubernetes.io/docs/concepts/security/pod-security-admission/
	expirationSince  = 22 // expirationSeconds: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/
	prioritySince    = 17 // quotas of priority classes; until then, pods outside kube-system cannot have a system class: CHANGELOG-1.17 of k8s.io/kubernetes
	certificatesV1   = 19 // certificates.k8s.io/v1, same place
)

// CardQuotasSince is the minor of Kubernetes since which quotas count cards.
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources
const CardQuotasSince = 10

// CreateUser plans the rights of a user and their certificate, or other rights and another certificate for one who is there.
func CreateUser(inv *inventory.Inventory, seen map[string]*facts.Host, u User) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	values := map[string]string{"user": u.Name, "namespace": u.Namespace, "role": u.Role}
	if u.GPUs != nil {
		values["gpus"] = strconv.Itoa(*u.GPUs)
	}
	all := map[string][]object{"namespaceObject": {b.userNamespace(u)}, "manifest": manifest.Adapt(b.Minor, userRights(u)), "request": {b.userRequest(u)}}
	if inv.Kubernetes.Version.Minor >= prioritySince {
		all["limits"] = []object{noSystemPriority(u.Namespace)}
	}
	for name, objects := range all {
		if values[name], err = manifests.Encode(objects...); err != nil {
			return nil, err
		}
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "user/create"}, Title: fmt.Sprintf("let %s work in the namespace %s", u.Name, u.Namespace), Reason: "you asked for it",
		Input: graph.Input{Values: values},
	})
	return &b.graph, b.graph.Validate()
}

// DeleteUser plans the end of a user's rights.
func DeleteUser(inv *inventory.Inventory, seen map[string]*facts.Host, name string) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "user/delete"}, Title: "take all rights from " + name, Reason: "you asked for it",
		Input: graph.Input{Values: map[string]string{"user": name}},
	})
	return &b.graph, b.graph.Validate()
}

// userNamespace refuses pods that would rule their node, and with it the cluster: the host's files, its network, its devices.
// Cards that the device plugin hands out are not among these.
func (b *builder) userNamespace(u User) object {
	labels := merge(object{}, managed)
	if NamespacesRefusePods(b.Inventory) {
		labels["pod-security.kubernetes.io/enforce"] = "baseline"
	}
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": u.Namespace, "labels": labels}}
}

// noSystemPriority refuses pods that would push others from their nodes, those of the cluster itself among them.
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-per-priorityclass
func noSystemPriority(namespace string) object {
	classes := object{"scopeName": "PriorityClass", "operator": "In", "values": []any{"system-node-critical", "system-cluster-critical"}}
	return object{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": "kgpu-no-system-priority", "namespace": namespace, "labels": managed},
		"spec": object{"hard": object{"pods": 0}, "scopeSelector": object{"matchExpressions": []any{classes}}},
	}
}

// userRights are the role in the namespace, and to see the nodes, which are in none: of the user alone, so that nothing is
// left of them with a certificate that is still valid.
func userRights(u User) []object {
	labels := merge(object{userLabel: u.Name}, managed)
	subjects := []any{object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": u.Name}}
	role := func(name string) object {
		return object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
	}
	return []object{
		{
			"kind": "ClusterRole", "metadata": object{"name": "kgpu:nodes-view", "labels": managed},
			"rules": []any{object{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"get", "list", "watch"}}},
		},
		{
			"kind": "ClusterRoleBinding", "metadata": object{"name": "kgpu:nodes-view:" + u.Name, "labels": labels},
			"roleRef": role("kgpu:nodes-view"), "subjects": subjects,
		},
		{
			"kind": "RoleBinding", "metadata": object{"name": "kgpu-user-" + u.Name, "namespace": u.Namespace, "labels": labels},
			"roleRef": role(u.Role), "subjects": subjects,
		},
	}
}

func (b *builder) userRequest(u User) object {
	spec := object{
		"request": base64.StdEncoding.EncodeToString(u.Request),
		"usages":  []any{"digital signature", "key encipherment", "client auth"},
	}
	api := "certificates.k8s.io/v1beta1"
	if b.Minor.Number >= certificatesV1 {
		api, spec["signerName"] = "certificates.k8s.io/v1", "kubernetes.io/kube-apiserver-client"
	}
	if HeedsLifetime(b.Inventory) {
		spec["expirationSeconds"] = int(u.Lifetime / time.Second)
	}
	return object{
		"apiVersion": api, "kind": "CertificateSigningRequest",
		"metadata": object{"name": "kgpu-user-" + u.Name, "labels": merge(object{userLabel: u.Name}, managed)}, "spec": spec,
	}
}
