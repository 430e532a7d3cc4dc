package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestDayTwo lives with a cluster: goes into it by all the ways that kgpu opens, looks at it while it is well and while it loses
// its hosts one after the other, and takes a worker out of it. The host is as it was before kgpu came then, the inventory has
// lost its entry and nothing else, and the worker may come again. One that is dead leaves, too, and comes back as the control plane
// of a cluster that somebody made by hand, which kgpu leaves alone unless it is told to take it over.
func TestDayTwo(t *testing.T) {
	l := newLab(t, nil, "--workers", "2")
	fresh := l.snapshot(t, "cp1", "w1", "w2")
	c := newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories() + "notebook: {framework: none}\nsecurity: {encryptSecrets: true}\n",
		hosts: []string{l.host("cp1", "name: cp1"), l.host("w1", "name: w1") + " # stays", l.host("w2", "name: w2") + " # goes"},
	})
	entry := "  - " + l.host("w2", "name: w2") + " # goes\n"
	before, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(before), entry, "", 1)
	lost := func(t *testing.T) {
		t.Helper()
		if now, err := os.ReadFile(c.inventory); err != nil || string(now) != without || without == string(before) {
			t.Errorf("%v: the inventory is now\n%s", err, now)
		}
	}

	must(t, "nothing is there yet", func(t *testing.T) {
		kgpu(t, 16, "kubeconfig", "-i", c.inventory)
		kgpu(t, 16, "user", "create", "joe", "-i", c.inventory)
		c.statusOfBareHosts(t)
		l.unchanged(t, fresh)
	})
	must(t, "up, while a host reboots and another is cut off", func(t *testing.T) {
		c.upInterrupted(t)
		c.ready(t, "cp1", "w1", "w2")
	})
	t.Run("status", c.statusOfAllWell)
	t.Run("security", c.defended)
	t.Run("a volume of an image", c.imageVolume)
	t.Run("what it was made with stays", c.keeps)
	t.Run("access", c.access)
	t.Run("users", func(t *testing.T) {
		c.exec(t, "w1", "systemctl stop kubelet") // the control plane notices that while the users come and go
		c.users(t)
	})
	t.Run("a kubelet that does not run", c.statusWithoutKubelet)
	t.Run("the control plane does not leave", func(t *testing.T) {
		kgpu(t, 3, "remove-worker", "--yes", "--inventory", c.inventory, l.addr["cp1"])
	})
	must(t, "leaves", func(t *testing.T) {
		s := kgpu(t, 0, "remove-worker", "--yes", "--inventory", c.inventory, "--output", "json", l.addr["w2"])
		wantSteps(t, c.did(s), "cp1 node/delete/w2", "cp1 node/drain/w2", "w2 host/reset")
		c.ready(t, "cp1", "w1")
		l.unchanged(t, snapshots{"w2": fresh["w2"]})
		lost(t)
		c.rolledOut(t)
		if got := c.status(t, 0, c.inventory); len(got.Hosts) != 2 || len(got.OtherNodes) != 0 {
			t.Errorf("%+v", got)
		}
		kgpu(t, 0, "plan", c.inventory)
	})
	must(t, "comes again, where the kubelet of the control plane was stopped", func(t *testing.T) {
		c.exec(t, "cp1", "systemctl disable -q --now kubelet")
		c.addWorker(t, "w2", "cp1", "w1")
		c.ready(t, "cp1", "w1", "w2")
		c.exec(t, "cp1", "systemctl is-enabled kubelet && systemctl is-active kubelet")
		kgpu(t, 0, "plan", c.inventory)
	})
	must(t, "certificates", c.certificates)
	must(t, "nodes are deleted", c.nodesAreDeleted)
	t.Run("hosts forget the API server's name", func(t *testing.T) {
		long(t)
		c.namesAreForgotten(t)
	})
	must(t, "is dead", func(t *testing.T) {
		l.verb(t, "kill", "w2")
		s := start(t, "", "remove-worker", "--yes", "--inventory", c.inventory, l.addr["w2"]) // which tries for as long as status
		got := c.status(t, 2, c.inventory)
		if w2 := got.Hosts[2]; w2.Reached || !slices.Contains(got.problems(), w2.Host+" SSH_UNREACHABLE") || !got.Cluster.API.Answers {
			t.Errorf("%+v, %+v", w2, got.Problems)
		}
		if code := s.wait(t); code == 0 || !strings.Contains(s.stderr.String(), "--force") {
			t.Fatalf("exit status %d\n%s", code, s.stderr.String())
		}
		s = kgpu(t, 0, "remove-worker", "--yes", "--force", "--inventory", c.inventory, "w2")
		if said := s.stdout.String(); !strings.Contains(said, "the host itself was not cleaned") {
			t.Errorf("kgpu says\n%s", said)
		}
		c.ready(t, "cp1", "w1")
		lost(t)
		c.forgetPods(t, "w2")
		c.rolledOut(t)
		kgpu(t, 0, "plan", c.inventory)
	})
	plain := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories()}
	must(t, "a cluster made by hand", func(t *testing.T) {
		l.verb(t, "start", "w2")
		c.madeByHand(t, plain)
	})
	t.Run("and taken over", func(t *testing.T) { l.takenOver(t, plain) })
	t.Run("the rest goes on", func(t *testing.T) { kgpu(t, 0, "plan", c.inventory) })
	l.verb(t, "kill", "w2")
	t.Run("the control plane is off", func(t *testing.T) { c.statusWithoutControlPlane(t, file(t, "inventory.yaml", string(before))) })
}

// addWorker adds a host to the file and to the cluster, and leaves the other worker alone.
func (c *cluster) addWorker(t *testing.T, host, controlPlane, other string) {
	before := read(t, c.inventory)
	logins := c.logins(t, other)
	add := func() *session {
		return kgpu(t, 0, "add-worker", "--inventory", c.inventory, "--output", "json", c.addr[host])
	}
	s := add()
	for _, kind := range []string{"connect", "command"} {
		for h, n := range s.perHost(kind) {
			if h == other || h == c.addr[other] {
				t.Errorf("%d %s events of %s", n, kind, other)
			}
		}
	}
	if n := c.logins(t, other); n != logins {
		t.Errorf("%s: %s logins, want %s as before", other, n, logins)
	}
	c.noSecrets(t, s, controlPlane, host)
	after := read(t, c.inventory)
	kept := slices.DeleteFunc(lines(after), func(line string) bool { return strings.Contains(line, c.addr[host]) })
	if !slices.Equal(kept, lines(before)) || len(kept) == len(lines(after)) {
		t.Errorf("the inventory was\n%s\nand is\n%s", before, after)
	}
	wantSteps(t, c.did(add()))
	if again := read(t, c.inventory); again != after {
		t.Errorf("the inventory changed once more:\n%s", again)
	}
}

// logins is how often somebody logged in by ssh.
func (c *cluster) logins(t *testing.T, host string) string {
	t.Helper()
	return c.exec(t, host, "journalctl --no-pager -o cat -t sshd -t sshd-session -t sshd-auth | grep -c 'Accepted publickey' || :")
}

// upInterrupted runs kgpu up while the host w1 reboots and w2 is cut off. Both have names.
func (c *cluster) upInterrupted(t *testing.T) {
	s := start(t, "", "up", "--output", "json", c.inventory)
	var both sync.WaitGroup
	s.await(t, "w1 began to install", func(e event) bool {
		return e.Event == "step.start" && e.Host == "w1" && e.Step == "runtime/containerd"
	})
	both.Go(func() { c.verb(t, "reboot", "w1") })
	c.verb(t, "cut", "w2")
	s.await(t, "w2 is lost", func(e event) bool { return e.Event == "wait" && e.Host == "w2" && e.Reason == "SSH_LOST" })
	c.verb(t, "heal", "w2")
	both.Wait()
	if code := s.wait(t); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	for _, h := range []string{"w1", "w2"} {
		if n := s.perHost("connect")[h]; n < 2 {
			t.Errorf("%s: %d connections: the interruption was not one", h, n)
		}
	}
}

// keeps wants what the cluster was made with to be refused where the file says something else, all of it at once, each key at its
// place and before anything is done, and to count where the file says nothing.
func (c *cluster) keeps(t *testing.T) {
	text, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(c.inventory), "changed.yaml")
	up := func(status int, changes ...string) *session {
		t.Helper()
		file := string(text)
		for i := 0; i < len(changes); i += 2 {
			was := file
			if file = strings.Replace(file, changes[i], changes[i+1], 1); file == was {
				t.Fatalf("the inventory has no %q", changes[i])
			}
		}
		if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		return kgpu(t, status, "up", "--yes", path, "--output", "json")
	}
	keys := map[string][2]string{
		"kubernetes.podCIDR":                {"kubernetes:\n", "kubernetes:\n  podCIDR: 10.60.0.0/16\n"},
		"kubernetes.serviceCIDR":            {"kubernetes:\n", "kubernetes:\n  serviceCIDR: 10.70.0.0/16\n"},
		"network":                           {"network: flannel\n", "network: calico\n"},
		"runtime":                           {"runtime: containerd\n", "runtime: docker\n"},
		"cluster":                           {"cluster: e2e\n", "cluster: other\n"},
		"security.encryptSecrets":           {"encryptSecrets: true", "encryptSecrets: false"},
		"kubernetes.kubeProxyConfiguration": {"min: 0}", "min: 1}"},
	}
	var all []string
	for _, change := range keys {
		all = append(all, change[0], change[1])
	}
	s := up(241, all...)
	said := s.stdout.String() + s.stderr.String()
	for key := range keys {
		if !regexp.MustCompile(`changed\.yaml:\d+:\d+: ` + regexp.QuoteMeta(key) + `: the cluster has `).MatchString(said) {
			t.Errorf("of %s, kgpu says\n%s", key, said)
		}
	}
	if begun := s.of("step.start"); len(begun) > 0 {
		t.Errorf("steps were begun: %v", begun)
	}
	wantSteps(t, c.did(up(0, "runtime: containerd\nnetwork: flannel\n", "")))
}
