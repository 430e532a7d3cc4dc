package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// clusterStatus is what of `kgpu status --output json` the test looks at.
type clusterStatus struct {
	Schema  int
	Well    bool
	Cluster struct {
		API struct {
			Answers        bool
			Version, Error string
		}
		DNS     struct{ Desired, Ready int }
		Waiting struct {
			Count    int
			Notebook bool
			Pods     []struct{ Name, Why string }
		}
	}
	Hosts []struct {
		Host, State, Role string
		Reached           bool
		Node              struct{ Name, Reason string }
		Versions          struct{ Kubelet, Runtime, Kernel, OS string }
		Certificates      []struct {
			Name string
			Days int
		}
		Network []struct{ Ready bool }
		Drift   struct {
			Known   bool
			Pending []struct{ Step, Reason string }
		}
	}
	OtherNodes []struct{ Name string }
	Problems   []struct{ Host, Reason, Text, Advice string }
}

// status runs kgpu status, which must end so, and returns what it says as JSON.
func (c *cluster) status(t *testing.T, want int, inventory string) clusterStatus {
	t.Helper()
	s := kgpu(t, want, "status", "--output=json", inventory)
	var got clusterStatus
	if err := json.Unmarshal(s.stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, s.stdout.String())
	}
	if got.Schema != 1 || got.Well != (want == 0) || (len(got.Problems) == 0) != got.Well {
		t.Errorf("schema %d, well %t: %+v", got.Schema, got.Well, got.Problems)
	}
	return got
}

// problems are host and reason of each.
func (s clusterStatus) problems() []string {
	var out []string
	for _, p := range s.Problems {
		out = append(out, p.Host+" "+p.Reason)
	}
	return out
}

// statusOfBareHosts looks at hosts of which a cluster is to be made.
func (c *cluster) statusOfBareHosts(t *testing.T) {
	for _, h := range c.status(t, 2, c.inventory).Hosts {
		if !h.Reached || h.State != "no-node" || len(h.Drift.Pending) == 0 {
			t.Errorf("%+v", h)
		}
	}
}

// statusOfAllWell looks at a cluster of cp1, w1 and w2, changes nothing there, and finds a node that an inventory does not have.
func (c *cluster) statusOfAllWell(t *testing.T) {
	hosts := []string{"cp1", "w1", "w2"}
	c.rolledOut(t)
	c.podsHaveEnded(t, hosts...)
	before := c.settled(t, hosts...)
	got := c.status(t, 0, c.inventory)
	if !got.Cluster.API.Answers || !strings.HasPrefix(got.Cluster.API.Version, "v1.36.") || got.Cluster.DNS.Ready != 2 || len(got.Hosts) != 3 || len(got.OtherNodes) != 0 {
		t.Errorf("%+v", got)
	}
	for i, h := range got.Hosts {
		if h.Host != hosts[i] || h.Node.Name != hosts[i] || !h.Reached || h.State != "ready" || !h.Drift.Known || len(h.Drift.Pending) != 0 || len(h.Network) != 2 ||
			!strings.HasPrefix(h.Versions.Kubelet, "v1.36.") || !strings.HasPrefix(h.Versions.Runtime, "containerd://") || h.Versions.Kernel == "" || h.Versions.OS == "" {
			t.Errorf("%+v", h)
		}
		want := 3 // the kubelet's, that at its port, and the CA's
		if hosts[i] == "cp1" {
			want = 16 // kubeadm's own, too
		}
		if n := len(h.Certificates); n != want || h.Certificates[0].Days < 300 || h.Certificates[0].Days > 365 {
			t.Errorf("%s: %d certificates: %+v", hosts[i], n, h.Certificates)
		}
	}
	said := kgpu(t, 0, "status", c.inventory).stdout.String()
	if strings.Count(said, " Ready ") != 3 || !strings.Contains(said, "All is well.") {
		t.Errorf("the table is\n%s", said)
	}

	part := desired{version: "1.36", runtime: "containerd", network: "flannel", more: c.repositories(), hosts: []string{c.host("cp1", "name: cp1"), c.host("w1", "name: w1")}}
	got = c.status(t, 2, c.write(t, t.TempDir(), part))
	if len(got.OtherNodes) != 1 || got.OtherNodes[0].Name != "w2" || !slices.Contains(got.problems(), " HOST_NOT_IN_INVENTORY") {
		t.Errorf("%+v, %+v", got.OtherNodes, got.Problems)
	}

	other := part
	other.version = "1.35"
	file := c.write(t, t.TempDir(), other)
	got = c.status(t, 2, file)
	if !slices.Contains(got.problems(), "cp1 KUBERNETES_VERSION_CHANGE") || len(got.Hosts[0].Drift.Pending) > 0 {
		t.Errorf("another version: %+v, %+v", got.Problems, got.Hosts[0].Drift)
	}
	kgpu(t, 43, "up", "--ignore", "HOST_FOREIGN_CLUSTER", file)
	c.unchanged(t, before)
}

// rolledOut waits until all workloads of the cluster's own are ready.
func (c *cluster) rolledOut(t *testing.T) {
	t.Helper()
	for _, name := range []string{"kube-system daemonset/kube-proxy", "kube-flannel daemonset/kube-flannel-ds", "kube-system deployment/coredns"} {
		namespace, workload, _ := strings.Cut(name, " ")
		c.k(t, "-n", namespace, "rollout", "status", workload, "--timeout=150s") // pods of a node that is gone are let go after a minute
	}
}

// statusWithoutKubelet looks at w1, whose kubelet was stopped, and starts it again.
func (c *cluster) statusWithoutKubelet(t *testing.T) {
	c.k(t, "wait", "--for=condition=Ready=Unknown", "node/w1", "--timeout=150s")
	got := c.status(t, 2, c.inventory)
	w1 := got.Hosts[1]
	if w1.State != "not-ready" || !w1.Reached || w1.Node.Reason != "NodeStatusUnknown" || len(w1.Drift.Pending) == 0 || !slices.Contains(got.problems(), "w1 NODE_NOT_READY") {
		t.Errorf("%+v, %+v", w1, got.Problems)
	}
	if said := kgpu(t, 2, "status", c.inventory).stdout.String(); !strings.Contains(said, "NotReady for ") {
		t.Errorf("the table is\n%s", said)
	}
	c.exec(t, "w1", "systemctl start kubelet")
	c.k(t, "wait", "--for=condition=Ready", "node/w1", "--timeout=150s")
	// Registration may come after it. A kubelet whose node is deleted in between would make another one.
	c.exec(t, "w1", `timeout 150 bash -c 'until journalctl --no-pager -o cat _PID=$(systemctl show -P MainPID kubelet) | grep -q "Successfully registered node"; do sleep 0.2; done'`)
}

// statusWithoutControlPlane switches cp1 off for good and looks. This inventory has w2 still, which is off, too.
func (c *cluster) statusWithoutControlPlane(t *testing.T, inventory string) {
	c.verb(t, "kill", "cp1")
	table := start(t, "", "status", inventory) // both try for a while
	got := c.status(t, 2, inventory)
	if w1 := got.Hosts[1]; got.Cluster.API.Answers || got.Cluster.API.Error == "" || !w1.Reached || w1.State != "unknown" || w1.Drift.Known {
		t.Errorf("%+v", got)
	}
	if code := table.wait(t); code != 2 {
		t.Errorf("exit status %d", code)
	}
	said := table.stdout.String()
	for host, want := range map[string]string{"cp1": "unreachable", "w1": "unknown", "w2": "unreachable"} {
		row := host + " "
		if !slices.ContainsFunc(lines(said), func(line string) bool { return strings.HasPrefix(line, row) && strings.Contains(line, want) }) {
			t.Errorf("no row of %s says %s:\n%s", host, want, said)
		}
	}
}
