package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mostGap is how long nothing may answer at the virtual address, when another control plane takes it. It is about one second; lab hosts may
// have little of the processors for two more. Neighbours that ask the wrong host until keepalived's default announces again need over five.
const mostGap = 4 * time.Second

// TestPlanes makes a cluster with three control planes. Power is cut on the one that has the virtual address: the API server answers
// through it again, measured by a client that connects every 50 ms, and commands work while one is down. A reset leaves nothing.
// The long one has cards, begins with one control plane and no address, is upgraded while a client asks, cuts the power ten times, loses
// quorum, replaces the first control plane by a fresh machine while kgpu is killed, gives up one that is lost, and has it back.
func TestPlanes(t *testing.T) {
	hosts, kills := []string{"cp1", "w1", "w2"}, 1
	prepared, up, version := []string(nil), []string{"--workers", "2"}, "1.36"
	if !testing.Short() {
		version = "1.36.2"
		hosts, kills = []string{"cp1", "w1", "w2", "w3", "w4"}, 10
		prepared, up = []string{"gpu"}, []string{"--workers", "4", "--gpus", "w3=1xT4", "--gpus", "w4=2xA100"}
	}
	l := newLab(t, prepared, up...)
	planes, cards := hosts[:3], 3
	virtual := l.addr["cp1"][:strings.LastIndexByte(l.addr["cp1"], '.')] + ".100"
	var again sync.WaitGroup
	for _, h := range planes { // power is cut later: what only a first boot does is not in the snapshot then
		again.Go(func() { l.verb(t, "reboot", h) })
	}
	again.Wait()
	fresh := l.snapshot(t, hosts...)
	d := desired{version: version, runtime: "containerd", network: "flannel", more: l.forCards(), virtualIP: virtual}
	for _, h := range hosts {
		role := ""
		if h != "cp1" && slices.Contains(planes, h) {
			role = "role: control-plane"
		}
		d.hosts = append(d.hosts, l.host(h, role))
	}
	c := newCluster(t, l, d)
	must(t, "an address that somebody has", func(t *testing.T) {
		l.exec(t, "w2", "ip address add "+virtual+"/32 dev eth0")
		s := kgpu(t, 40, "plan", c.inventory) // several reasons
		for _, id := range []string{"VIRTUAL_IP_TAKEN", "VIRTUAL_IP_UNFIT"} {
			if !strings.Contains(s.stderr.String(), id) {
				t.Errorf("%s is not named:\n%s", id, s.stderr.String())
			}
		}
		l.exec(t, "w2", "ip address delete "+virtual+"/32 dev eth0")
	})
	if !testing.Short() {
		must(t, "from one to three", func(t *testing.T) { c.growsToThree(t, d, virtual) })
	}
	must(t, "from nothing", func(t *testing.T) {
		c.up(t)
		c.ready(t, hosts...)
		c.nothingToDo(t, hosts...)
		if !testing.Short() {
			c.provenOn(t, kgpu(t, 0, "smoke", "--output", "json", c.inventory), cards, "w3", "w4")
		}
		if on := c.dnsNodes(t); len(on) != 2 || on[0] == on[1] {
			t.Errorf("the DNS is on %v", on)
		}
		if left := c.k(t, "-n", "kube-system", "get", "secrets", "-o", "name"); strings.Contains(left, "kubeadm-certs") || strings.Contains(left, "bootstrap-token") {
			t.Errorf("secrets of the joins are left: %s", left)
		}
	})
	must(t, "the holder of the address loses power", func(t *testing.T) {
		var gaps []time.Duration
		for range kills {
			gaps = append(gaps, c.failover(t, planes, virtual, len(hosts)))
		}
		slices.Sort(gaps)
		t.Logf("through the virtual address nothing answered for %v", gaps)
		if most := gaps[len(gaps)-1]; most > mostGap {
			t.Errorf("nothing answered for %s", most)
		}
	})
	if !testing.Short() {
		d.version = "1.36.3"
		must(t, "an upgrade", func(t *testing.T) { c.upgradesPlanes(t, d.version, virtual, hosts) })
		c.planesComeAndGo(t, d, cards, virtual, fresh)
	}
	must(t, "reset", func(t *testing.T) {
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		l.unchanged(t, fresh)
		for _, h := range hosts {
			if has := l.exec(t, h, "ip -o address show to "+virtual+"; dpkg -l keepalived 2>/dev/null | grep '^ii' || :"); has != "" {
				t.Errorf("%s has %s", h, has)
			}
		}
	})
}

// upgradesPlanes brings a cluster with three control planes to a version, while a client connects to the virtual address every 50 ms: no
// longer than where power is cut does nothing answer, though kgpu is killed on the way. The nodes go one after the other.
func (c *cluster) upgradesPlanes(t *testing.T, version, virtual string, hosts []string) {
	t.Helper()
	client := watchAPI(virtual, "livez", 50*time.Millisecond)
	began := time.Now()
	first := start(t, "", "upgrade", version, "--yes", "--output", "json", "-i", c.inventory)
	first.await(t, "the second control plane is upgraded", func(e event) bool {
		return e.Event == "step.start" && e.Step == "cluster/upgrade" && e.Host != c.addr["cp1"]
	})
	first.kill()
	second := kgpu(t, 0, "up", "--yes", "--output", "json", c.inventory)
	gap := client.stop()
	t.Logf("the upgrade took %s; through the virtual address nothing answered for up to %s", time.Since(began).Round(time.Second), gap)
	if gap > mostGap {
		t.Errorf("nothing answered for %s", gap)
	}
	now := c.versions(t)
	for _, h := range hosts {
		if !strings.Contains(now, h+"=v"+version) {
			t.Errorf("the cluster has %s, want %s", now, version)
		}
	}
	c.drainedInTurn(t, hosts, first, second)
	c.nothingToDo(t, hosts...)
}

// provenOn wants every card of these hosts proven.
func (c *cluster) provenOn(t *testing.T, s *session, cards int, hosts ...string) {
	t.Helper()
	proven := s.cards()
	for _, h := range hosts {
		if !slices.ContainsFunc(proven, func(card string) bool { return strings.HasPrefix(card, c.addr[h]+" ") }) {
			t.Errorf("no card of %s is proven", h)
		}
	}
	if len(proven) != cards {
		t.Errorf("proven are %q", proven)
	}
}

// planesComeAndGo is what happens to control planes in the long run. fresh gets the snapshot of the machine that replaces one.
func (c *cluster) planesComeAndGo(t *testing.T, d desired, cards int, virtual string, fresh snapshots) {
	l := c.lab
	must(t, "all commands while one is down", func(t *testing.T) { c.commandsWithout(t, "cp1") })
	must(t, "quorum is lost", func(t *testing.T) {
		l.verb(t, "kill", "w1")
		l.verb(t, "kill", "w2")
		s := start(t, "", "up", "--output", "json", c.inventory)
		if s.wait(t) == 0 || len(s.of("error")) == 0 || s.of("error")[0].Reason != "CLUSTER_QUORUM_LOST" {
			t.Errorf("%v", s.of("error"))
		}
		l.verb(t, "start", "w1")
		l.verb(t, "start", "w2")
		c.answers(t, virtual)
	})
	l.verb(t, "kill", "cp1")
	if err := os.RemoveAll(l.Host("cp1")); err != nil {
		t.Fatal(err)
	}
	l.up(t, "--workers", "4")
	l.verb(t, "reboot", "cp1")
	maps.Copy(fresh, l.snapshot(t, "cp1"))
	must(t, "the first is lost, and another machine takes its place", func(t *testing.T) {
		for _, step := range []string{"cluster/token", "cluster/join-control-plane"} {
			s := start(t, "", "up", "--output", "json", c.inventory)
			s.await(t, step+" began", func(e event) bool { return e.Event == "step.start" && e.Step == step })
			s.kill()
		}
		c.up(t)
		c.ready(t, "cp1", "w1", "w2", "w3", "w4")
		c.nothingToDo(t, "cp1", "w1", "w2", "w3", "w4")
		if members := c.etcdMembers(t, "w1"); members != "cp1 w1 w2" {
			t.Errorf("etcd has %s", members)
		}
	})
	must(t, "one of two that leave is lost", func(t *testing.T) {
		if s := kgpu(t, 3, "remove-control-plane", "--yes", "-i", c.inventory, c.addr["w2"]); !strings.Contains(s.stderr.String(), "2 control planes would stay") {
			t.Errorf("two control planes are left: %s", s.stderr.String())
		}
		l.verb(t, "kill", "w2")
		kgpu(t, 20, "remove-control-plane", "--yes", "-i", c.inventory, c.addr["cp1"], c.addr["w2"])
		kgpu(t, 0, "remove-control-plane", "--force", "--yes", "-i", c.inventory, c.addr["cp1"], c.addr["w2"])
		c.ready(t, "w1", "w3", "w4")
		if members := c.etcdMembers(t, "w1"); members != "w1" {
			t.Errorf("etcd has %s", members)
		}
		c.answers(t, virtual)
		c.nothingToDo(t, "w1", "w3", "w4")
	})
	must(t, "both come back", func(t *testing.T) {
		l.verb(t, "start", "w2")
		kgpu(t, 0, "add-control-plane", "--yes", "-i", c.inventory, c.addr["cp1"], c.addr["w2"])
		c.ready(t, "cp1", "w1", "w2", "w3", "w4")
		c.inventory = l.write(t, filepath.Dir(c.inventory), d)
		c.provenOn(t, c.up(t), 0)
		c.k(t, "-n", "kube-system", "get", "pods")
		c.provenOn(t, kgpu(t, 0, "smoke", "--output", "json", c.inventory), cards, "w3", "w4")
	})
}

// commandsWithout runs every command that works on a cluster while one of its control planes is off.
func (c *cluster) commandsWithout(t *testing.T, off string) {
	t.Helper()
	c.dnsOn(t, off)
	c.verb(t, "kill", off)
	for _, args := range [][]string{
		{"smoke", c.inventory},
		{"user", "create", "joe", "-i", c.inventory},
		{"user", "list", "-i", c.inventory},
		{"user", "delete", "joe", "-i", c.inventory},
		{"kubeconfig", "-i", c.inventory, "--file", filepath.Join(t.TempDir(), "kubeconfig")},
		{"render", "--out", filepath.Join(t.TempDir(), "rendered"), c.inventory},
		{"notebook", "--stop", "-i", c.inventory},
		{"backup", "-i", c.inventory, "--file", filepath.Join(t.TempDir(), "backup.tar.gz")},
		{"plan", c.inventory},
	} {
		if args[0] == "plan" {
			c.k(t, "wait", "--for=condition=Ready=Unknown", "node/"+off, "--timeout=2m") // then the pods there are not ready any more
		}
		s := kgpu(t, 0, args...)
		if said := s.stdout.String() + s.stderr.String(); !strings.Contains(said, c.addr[off]+" is not reached: ") {
			t.Errorf("kgpu %s does not say that %s is down:\n%s", args[0], off, said)
		}
	}
	if said := kgpu(t, 2, "certs", "-i", c.inventory).stdout.String(); !strings.Contains(said, c.addr["w1"]+"  API server ") || !strings.Contains(said, "SSH_UNREACHABLE") {
		t.Errorf("certs does not name %s, or not the others' certificates:\n%s", off, said)
	}
	look := start(t, "", "doctor", "--output=json", "-i", c.inventory)
	look.wait(t)
	if found := c.found(t, look); !strings.Contains(fmt.Sprint(found), "SSH_UNREACHABLE") {
		t.Errorf("doctor does not name %s: %v", off, found)
	}
	c.verb(t, "start", off)
	c.exec(t, off, "until curl -sk https://127.0.0.1:6443/readyz | grep -q ok; do sleep 1; done")
}

// dnsOn has a node run one pod of the cluster's DNS: there are two, on different nodes.
func (c *cluster) dnsOn(t *testing.T, node string) {
	t.Helper()
	if !slices.Contains(c.dnsNodes(t), node) {
		c.k(t, "cordon", "--selector", "kubernetes.io/hostname!="+node)
		c.k(t, "-n", "kube-system", "delete", lines(c.k(t, "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "name"))[0])
		c.k(t, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
		c.k(t, "uncordon", "--selector", "kubernetes.io/hostname!="+node)
	}
	if on := c.dnsNodes(t); len(on) != 2 || !slices.Contains(on, node) || on[0] == on[1] {
		t.Fatalf("the DNS is on %v", on)
	}
}

// dnsNodes are the nodes of the pods of the cluster's DNS that stay.
func (c *cluster) dnsNodes(t *testing.T) []string {
	t.Helper()
	return strings.Fields(c.k(t, "-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o",
		"go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.spec.nodeName}} {{end}}{{end}}"))
}

// etcdMembers are the names of etcd's members, as the one of a control plane tells them.
func (c *cluster) etcdMembers(t *testing.T, at string) string {
	t.Helper()
	names := lines(c.k(t, "-n", "kube-system", "exec", "etcd-"+at, "--", "etcdctl", "--endpoints=https://127.0.0.1:2379", "--cacert=/etc/kubernetes/pki/etcd/ca.crt",
		"--cert=/etc/kubernetes/pki/etcd/server.crt", "--key=/etc/kubernetes/pki/etcd/server.key", "member", "list"))
	for i, line := range names {
		names[i] = strings.Split(line, ", ")[2]
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
