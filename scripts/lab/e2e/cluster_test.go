package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cluster is a lab with an inventory.
type cluster struct {
	*lab
	inventory  string // path of the file
	kubeconfig string
	kubectl    string
}

// desired is what differs between the tests' inventories.
type desired struct {
	version, runtime, network string
	endOfLife                 bool
	virtualIP, endpoint       string   // of several control planes
	ignore                    string   // checks of kubeadm, beyond the lab's usual
	more                      string   // further YAML at the top level
	hosts                     []string // from lab.host
}

// host is an entry of an inventory's hosts, with more keys of YAML.
func (l *lab) host(name, more string) string {
	if name == "cp1" {
		more = strings.Trim("role: control-plane, "+more, ", ")
	}
	return "{" + strings.TrimSuffix("address: "+l.addr[name]+", "+more, ", ") + "}"
}

// ownDisk are a kubelet's settings for a host that shares the machine's disk: how full that is must not make it evict pods and
// delete images.
const ownDisk = "evictionHard: {memory.available: 100Mi, nodefs.available: 1Gi, imagefs.available: 1Gi}, imageGCHighThresholdPercent: 100"

// write writes an inventory for the lab's hosts and returns its path.
func (l *lab) write(t *testing.T, dir string, d desired) string {
	t.Helper()
	kubelet, old := ownDisk, ""
	if d.version >= "1.35" {
		kubelet += ", failCgroupV1: false" // this machine may have cgroup v1
	}
	if d.endOfLife {
		old = "\n  allowEndOfLife: true"
	}
	if d.virtualIP != "" {
		old += "\n  virtualIP: " + d.virtualIP
	}
	if d.endpoint != "" {
		old += "\n  controlPlaneEndpoint: " + d.endpoint
	}
	text := fmt.Sprintf(`# An inventory of the end-to-end tests.
cluster: e2e
kubernetes:
  version: %q%s
  kubeletConfiguration: {%s}
  ignorePreflightErrors: [SystemVerification%s]
  kubeProxyConfiguration: {conntrack: {maxPerCore: 0, min: 0}} # the kernel is shared
runtime: %s
network: %s
ssh:
  user: ubuntu
  key: %s
  agent: false
  knownHosts: %s
%s
hosts:
`, d.version, old, kubelet, d.ignore, d.runtime, d.network, l.env["KGPU_LAB_KEY"], l.env["KGPU_LAB_KNOWN_HOSTS"], d.more)
	for _, h := range d.hosts {
		text += "  - " + h + "\n"
	}
	path := filepath.Join(dir, "inventory.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// repositories are the lab's, which it signs itself. What was not prepared has no checksum.
func (l *lab) repositories() string {
	text := fmt.Sprintf("repositories:\n  kubernetes: {fingerprint: %[1]s}\n  docker: {fingerprint: %[1]s}\n"+
		"  cuda: {fingerprint: %[1]s}\n  nvidiaContainerToolkit: {fingerprint: %[1]s}\n", l.env["KGPU_LAB_FINGERPRINT"])
	if sum := l.env["KGPU_LAB_CRI_DOCKERD_SHA256"]; sum != "" {
		text += fmt.Sprintf("  criDockerd: {sha256: %q}\n", sum)
	}
	return text
}

// newCluster writes the inventory of a cluster that is to come.
func newCluster(t *testing.T, l *lab, d desired) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{lab: l, inventory: l.write(t, dir, d), kubeconfig: filepath.Join(dir, "e2e.kubeconfig")}
	var err error
	if c.kubectl, err = kubectl(); err != nil {
		t.Fatal(err)
	}
	return c
}

// up runs kgpu up, which must succeed.
func (c *cluster) up(t *testing.T) *session {
	t.Helper()
	return kgpu(t, 0, "up", "--output", "json", c.inventory)
}

// k runs kubectl with the kubeconfig that kgpu fetched.
func (c *cluster) k(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// ready wants exactly these nodes, all Ready.
func (c *cluster) ready(t *testing.T, want ...string) {
	t.Helper()
	out := c.k(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
	var nodes []string
	for _, n := range want {
		nodes = append(nodes, n+"=True")
	}
	slices.Sort(nodes)
	if got := lines(out); !slices.Equal(got, nodes) {
		t.Errorf("nodes: %v, want %v", got, nodes)
	}
	c.k(t, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=10s")
}

// proof shows with real traffic that the cluster works, and returns when nothing of that is left.
func (c *cluster) proof(t *testing.T, one, two string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "proof.sh"), c.kubeconfig, one, two)
	cmd.Env = append(os.Environ(), "KUBECTL="+c.kubectl)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("proof.sh: %v\n%s", err, out)
	}
	c.k(t, "delete", "namespace", "kgpu-proof", "--ignore-not-found", "--timeout=150s")
	// kube-proxy takes the Service's rules away a moment later.
	for _, host := range c.names(t) {
		c.exec(t, host, "for i in $(seq 300); do iptables-save | grep -q kgpu-proof || exit 0; sleep 0.2; done; exit 1")
	}
}

// nothingToDo runs kgpu up again: one connection and one remote command per host, and no step. A host that kgpu had to wait for,
// because it was too busy to answer in time, may have been asked once more. That no host is different afterwards, nothingIsDifferent
// holds.
func (c *cluster) nothingToDo(t *testing.T, hosts ...string) {
	t.Helper()
	s := c.up(t)
	busy := s.perHost("wait")
	for _, kind := range []string{"connect", "command"} {
		got := s.perHost(kind)
		delete(got, "") // a bastion is no host of the cluster
		for _, h := range hosts {
			if n := got[c.addr[h]]; n != 1 && (n != 2 || busy[c.addr[h]] == 0) {
				t.Errorf("%s: %d %s events, want 1", h, n, kind)
			}
		}
		if len(got) != len(hosts) {
			t.Errorf("%s events of %d hosts, want %d: %v", kind, len(got), len(hosts), got)
		}
	}
	if did := s.of("step.start"); len(did) > 0 {
		t.Errorf("a second up did %v", did)
	}
}

// nothingIsDifferent runs kgpu up again, and what else is to change nothing: no host is different afterwards.
func (c *cluster) nothingIsDifferent(t *testing.T, hosts []string, others ...func(*testing.T)) {
	t.Helper()
	c.podsHaveEnded(t, hosts...)
	before := c.settled(t, hosts...)
	c.nothingToDo(t, hosts...)
	for _, other := range others {
		other(t)
	}
	c.unchanged(t, before)
}

// podsHaveEnded returns when no pod is left on the hosts that the API server has forgotten, as those of the proof of the network:
// their kubelets take down what they had a moment later.
func (c *cluster) podsHaveEnded(t *testing.T, hosts ...string) {
	t.Helper()
	for _, h := range hosts {
		pods := len(lines(c.k(t, "get", "pods", "--all-namespaces", "--field-selector=spec.nodeName="+h, "-o", "name")))
		c.exec(t, h, fmt.Sprintf("for i in $(seq 300); do (($(systemctl list-units --plain --no-legend 'kubepods*-pod*.slice' | wc -l) > %d)) || exit 0; sleep 0.2; done; exit 1", pods))
	}
}

// did lists the steps that a run began, as host and step.
func (c *cluster) did(s *session) []string {
	name := map[string]string{}
	for host, address := range c.addr {
		name[address], name[host] = host, host
	}
	var out []string
	for _, e := range s.of("step.start") {
		out = append(out, name[e.Host]+" "+e.Step)
	}
	slices.Sort(out)
	return out
}

func wantSteps(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("steps: %v, want %v", got, want)
	}
}

// must runs a part of a test that the parts after it build on.
func must(t *testing.T, name string, part func(*testing.T)) {
	t.Helper()
	if !t.Run(name, part) {
		t.FailNow()
	}
}
