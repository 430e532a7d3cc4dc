package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// as runs the lab's kubectl with a kubeconfig, whatever it ends with.
func (c *cluster) as(t *testing.T, kubeconfig string, args ...string) (string, bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), c.kubectl, append([]string{"--kubeconfig", kubeconfig}, args...)...).CombinedOutput()
	return string(out), err == nil
}

// access goes into the cluster by all the ways that kgpu opens.
func (c *cluster) access(t *testing.T) {
	dir := filepath.Dir(c.inventory)
	// on runs kgpu where PATH is this and nothing else.
	on := func(t *testing.T, path, stdin string, want int, args ...string) string {
		t.Helper()
		program := filepath.Join(t.TempDir(), "kgpu")
		script := fmt.Sprintf("#!/bin/sh\nPATH=%s exec %s \"$@\"\n", path, kgpuProgram)
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		s := startProgram(t, program, stdin, args...)
		if code := s.wait(t); code != want {
			t.Fatalf("kgpu %s: exit status %d, want %d", strings.Join(args, " "), code, want)
		}
		return s.stdout.String()
	}
	nodes := func(t *testing.T, out string) {
		t.Helper()
		if !strings.Contains(out, "cp1") || !strings.Contains(out, "w1") {
			t.Errorf("the nodes are\n%s", out)
		}
	}

	t.Run("kubeconfig", func(t *testing.T) {
		file := filepath.Join(dir, "mine")
		kgpu(t, 0, "kubeconfig", "-i", c.inventory, "--file", file)
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		out, _ := c.as(t, file, "get", "nodes")
		nodes(t, out)
		if s := kgpu(t, 0, "kubeconfig", "-i", c.inventory, "--file", "-"); !strings.HasPrefix(s.stdout.String(), "# kgpu: ") || !strings.Contains(s.stdout.String(), "current-context: e2e") {
			t.Errorf("it printed %.60q", s.stdout.String())
		}
	})
	t.Run("kubeconfig of a host that lies", c.lies)
	t.Run("kubeconfig merged", func(t *testing.T) {
		config := filepath.Join(operatorHome, ".kube", "config")
		if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(filepath.Dir(config)) })
		const mine = "# mine\napiVersion: v1\nkind: Config\nclusters: [{name: work, cluster: {server: \"https://work:6443\"}}]\n" +
			"contexts: [{name: work, context: {cluster: work, user: me}}]\nusers: [{name: me, user: {}}]\ncurrent-context: work\n"
		if err := os.WriteFile(config, []byte(mine), 0o644); err != nil {
			t.Fatal(err)
		}
		kgpu(t, 0, "kubeconfig", "-i", c.inventory, "--merge")
		out, _ := c.as(t, config, "--context", "e2e", "get", "nodes")
		nodes(t, out)
		if out, _ := c.as(t, config, "config", "current-context"); out != "work\n" {
			t.Errorf("the current context became %s", out)
		}
		// kubectl writes the file anew in its own way, and knows whose the entries are.
		if out, ok := c.as(t, config, "config", "use-context", "work"); !ok {
			t.Error(out)
		}
		kgpu(t, 0, "kubeconfig", "-i", c.inventory, "--merge", "--use")
		out, _ = c.as(t, config, "get", "nodes")
		nodes(t, out)
		if out, _ := c.as(t, config, "config", "get-contexts", "-o", "name"); !slices.Equal(lines(out), []string{"e2e", "work"}) {
			t.Errorf("the contexts are %s", out)
		}
	})
	here, nowhere := filepath.Dir(c.kubectl)+":/usr/bin:/bin", t.TempDir() // a machine with kubectl, and one without
	t.Run("kubectl", func(t *testing.T) {
		nodes(t, on(t, here, "", 0, "kubectl", "-i", c.inventory, "--", "get", "nodes", "-o", "wide"))
		on(t, here, "", 1, "kubectl", "-i", c.inventory, "get", "node", "no-such-node")
		manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e2e}\n"
		if said := on(t, here, manifest, 0, "kubectl", "-i", c.inventory, "--", "apply", "-f", "-"); !strings.Contains(said, "configmap/e2e created") {
			t.Errorf("apply said %s", said)
		}
	})
	t.Run("kubectl of the control plane", func(t *testing.T) {
		nodes(t, on(t, nowhere, "", 0, "kubectl", "-i", c.inventory, "--", "get", "nodes"))
		on(t, nowhere, "", 1, "kubectl", "-i", c.inventory, "--", "get", "node", "no such node; true")
	})
	t.Run("the API server cannot be reached", func(t *testing.T) {
		from := c.addr["cp1"][:strings.LastIndex(c.addr["cp1"], ".")] + ".1"
		c.exec(t, "cp1", "iptables -I INPUT -p tcp --dport 6443 -s "+from+" -j REJECT")
		defer c.exec(t, "cp1", "iptables -D INPUT -p tcp --dport 6443 -s "+from+" -j REJECT")
		if out, ok := c.as(t, c.kubeconfig, "get", "nodes", "--request-timeout=5s"); ok {
			t.Errorf("it can: %s", out)
		}
		nodes(t, on(t, here, "", 0, "kubectl", "-i", c.inventory, "--", "get", "nodes"))
		if s := kgpu(t, 0, "kubeconfig", "-i", c.inventory); !strings.Contains(s.stderr.String(), "kgpu kubectl") {
			t.Errorf("it did not say how to get in: %s", s.stderr.String())
		}
	})
	t.Run("ssh", func(t *testing.T) {
		for _, host := range []string{"cp1", "w1"} {
			if got := strings.TrimSpace(kgpu(t, 0, "ssh", "-i", c.inventory, host, "--", "hostname").stdout.String()); got != host {
				t.Errorf("%s is called %q", host, got)
			}
		}
		kgpu(t, 7, "ssh", "-i", c.inventory, "w1", "exit", "7")
		if s := kgpu(t, 3, "ssh", "-i", c.inventory, "v1"); !strings.Contains(s.stderr.String(), `Did you mean "w1"?`) {
			t.Errorf("said %s", s.stderr.String())
		}
	})
	t.Run("notebook", func(t *testing.T) {
		if s := kgpu(t, 3, "notebook", "-i", c.inventory); !strings.Contains(s.stderr.String(), "framework: none") {
			t.Errorf("said %s", s.stderr.String())
		}
	})
	t.Run("dashboard", func(t *testing.T) {
		t.Run("without its image", func(t *testing.T) {
			long(t) // make test has scripts.TestDashboardImage
			c.fault(t, "ghcr.io/v2/headlamp-k8s", "status=404")
			s := start(t, "", "dashboard", "-i", c.inventory, "--output", "json")
			if code := s.wait(t); !slices.Contains([]int{31, 32, 75, 77}, code) {
				t.Errorf("without its image, the dashboard ended with %d", code)
			}
		})
		wantSteps(t, c.did(kgpu(t, 0, "dashboard", "-i", c.inventory, "--output", "json")), "cp1 addon/dashboard")
		var service struct{ Spec struct{ Type string } }
		if err := json.Unmarshal([]byte(c.k(t, "-n", "kgpu-dashboard", "get", "service", "headlamp", "-o", "json")), &service); err != nil || service.Spec.Type != "ClusterIP" {
			t.Errorf("%+v, %v", service, err)
		}
		c.k(t, "-n", "kgpu-dashboard", "rollout", "status", "deployment/headlamp", "--timeout=10s")
		for account, want := range map[string]string{"viewer": "yes", "headlamp": "no"} {
			out, _ := c.as(t, c.kubeconfig, "auth", "can-i", "list", "nodes", "--as", "system:serviceaccount:kgpu-dashboard:"+account)
			if !strings.Contains(out, want) {
				t.Errorf("%s may list nodes: %s", account, out)
			}
		}
		kgpu(t, 0, "dashboard", "-i", c.inventory, "--remove")
		if out := c.k(t, "get", "namespaces,clusterroles,clusterrolebindings", "-o", "name"); strings.Contains(out, "dashboard") {
			t.Errorf("left: %s", out)
		}
	})
}

// users come and go, with the rights that they are to have and no others.
func (c *cluster) users(t *testing.T) {
	file := filepath.Join(filepath.Dir(c.inventory), "e2e-joe.kubeconfig")
	s := kgpu(t, 0, "user", "create", "joe", "-i", c.inventory, "--output", "json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if key, ok := strings.CutPrefix(strings.TrimSpace(line), "client-key-data: "); ok && strings.Contains(s.stdout.String(), key) {
			t.Error("the key is among the events")
		}
	}
	for _, args := range []string{"get pods", "get nodes", "create configmap x", "-n joe get secrets"} {
		if out, ok := c.as(t, file, strings.Fields(args)...); !ok {
			t.Errorf("joe may not %s: %s", args, out)
		}
	}
	for _, args := range []string{
		"-n kube-system get secrets", "get pods -A", "create namespace mine", "label node w1 a=b", "label namespace joe pod-security.kubernetes.io/enforce-",
		"create clusterrolebinding mine --clusterrole cluster-admin --user joe", "get certificatesigningrequests",
	} {
		if out, ok := c.as(t, file, strings.Fields(args)...); ok || !strings.Contains(out, "orbidden") {
			t.Errorf("joe may %s: %s", args, out)
		}
	}
	root := `{"spec":{"volumes":[{"name":"root","hostPath":{"path":"/"}}]}}`
	if out, ok := c.as(t, file, "run", "root", "--image=x", "--overrides", root); ok || !strings.Contains(out, "PodSecurity") {
		t.Errorf("joe gets the host's files: %s", out)
	}
	if left := c.k(t, "get", "certificatesigningrequests", "-o", "name"); strings.Contains(left, "joe") {
		t.Errorf("left: %s", left)
	}
	if s := kgpu(t, 0, "user", "list", "-i", c.inventory); !strings.Contains(s.stdout.String(), "joe   joe        edit") {
		t.Errorf("the users are\n%s", s.stdout.String())
	}
	kgpu(t, 0, "user", "create", "joe", "-i", c.inventory, "--role", "view")
	if out, ok := c.as(t, file, "create", "configmap", "y"); ok {
		t.Errorf("joe only views, and may: %s", out)
	}
	// What joe gives themselves in their namespace goes, too; what somebody gives to them and others stays, and is told.
	kgpu(t, 0, "user", "create", "joe", "-i", c.inventory, "--role", "admin")
	for _, args := range []string{
		"create rolebinding mine --clusterrole admin --user joe", "create serviceaccount helper",
		"create rolebinding helper --clusterrole admin --serviceaccount joe:helper",
	} {
		if out, ok := c.as(t, file, strings.Fields(args)...); !ok {
			t.Errorf("joe may not %s: %s", args, out)
		}
	}
	token, _ := c.as(t, file, "create", "token", "helper", "--duration", "48h")
	server := strings.TrimSpace(c.k(t, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"))
	asHelper := []string{"--server", server, "--insecure-skip-tls-verify", "--token", strings.TrimSpace(token), "-n", "joe", "get", "secrets"}
	if out, ok := c.as(t, os.DevNull, asHelper...); !ok {
		t.Errorf("the ServiceAccount may not get secrets: %s", out)
	}
	c.k(t, "-n", "default", "create", "rolebinding", "team", "--clusterrole", "view", "--user", "joe", "--user", "ann")
	s = kgpu(t, 13, "user", "delete", "joe", "-i", c.inventory)
	if said := s.stderr.String(); !strings.Contains(said, "`kubectl edit -n default rolebinding team`") || !strings.Contains(said, "in default: ") {
		t.Errorf("joe is in a team, and kgpu said %s", said)
	}
	if out, ok := c.as(t, os.DevNull, asHelper...); ok {
		t.Errorf("joe is gone, and their ServiceAccount may get secrets: %s", out)
	}
	c.k(t, "-n", "default", "delete", "rolebinding", "team")
	if left := c.k(t, "get", "rolebindings,clusterrolebindings", "-A", "-o", "jsonpath={.items[*].subjects[*].name}"); slices.Contains(strings.Fields(left), "joe") || slices.Contains(strings.Fields(left), "helper") {
		t.Errorf("bindings of %s are left", left)
	}
	kgpu(t, 0, "user", "create", "joe", "-i", c.inventory, "--gpus", "1")
	for what, spec := range map[string]string{
		"a system's priority": `{"spec":{"priorityClassName":"system-node-critical"}}`,
		"two cards":           `{"spec":{"containers":[{"name":"x","image":"x","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}`,
	} {
		if out, ok := c.as(t, file, "run", "x", "--image=x", "--overrides", spec); ok || !strings.Contains(out, "quota") {
			t.Errorf("joe gets %s: %s", what, out)
		}
	}
	kgpu(t, 0, "user", "delete", "joe", "-i", c.inventory)
	for _, args := range []string{"get pods", "get nodes"} {
		if out, ok := c.as(t, file, strings.Fields(args)...); ok || !strings.Contains(out, "orbidden") {
			t.Errorf("joe is gone, and may %s: %s", args, out)
		}
	}
	if s := kgpu(t, 3, "user", "delete", "joe", "-i", c.inventory); !strings.Contains(s.stderr.String(), `no user "joe"`) {
		t.Errorf("it deleted nobody, and said %s", s.stderr.String())
	}
	kgpu(t, 3, "user", "create", "ann", "-i", c.inventory, "--namespace", "kube-system")
}
