package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// withContainerd is the inventory of containerdLife.
func (l *lab) withContainerd(t *testing.T) *cluster {
	t.Helper()
	return newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(),
		hosts: []string{l.host("cp1", ""), l.host("w1", "labels: {e2e.example.com/rack: a1}, taints: [e2e.example.com/kept=yes:PreferNoSchedule]") + " # the first", l.host("w2", "")},
	})
}

// containerdLife is up, up again, a repair, a worker more, a worker less. The inventory has the host w3, too, in the end.
func (c *cluster) containerdLife(t *testing.T) {
	must(t, "up", func(t *testing.T) {
		found := c.watchArguments()
		s := c.up(t)
		if arguments := found(); len(arguments) > 0 {
			t.Errorf("tokens in the arguments of processes: %q", arguments)
		}
		c.ready(t, "cp1", "w1", "w2")
		c.wholeStream(t, s, "cp1", "w1", "w2")
		quietKubeadm(t, s)
		c.noSecrets(t, s, "cp1", "w1", "w2")
		const want = "a1 worker=true e2e.example.com/kept:PreferNoSchedule"
		got := c.k(t, "get", "node", "w1", "-o", `go-template={{index .metadata.labels "e2e.example.com/rack"}}{{range $k, $v := .metadata.labels}}{{if eq $k "node-role.kubernetes.io/worker"}} worker=true{{end}}{{end}}{{range .spec.taints}} {{.key}}:{{.effect}}{{end}}`)
		if got != want {
			t.Errorf("w1 has %q, want %q", got, want)
		}
	})
	must(t, "proof", func(t *testing.T) { c.proof(t, "w1", "w2") })
	t.Run("up again", func(t *testing.T) { c.nothingToDo(t, "cp1", "w1", "w2") })
	t.Run("repair", c.repair)
	t.Run("add-worker", c.addWorker)
	t.Run("reset refused", c.resetRefused)
}

// wholeStream wants what holds for the events of every run that went well.
func (c *cluster) wholeStream(t *testing.T, s *session, hosts ...string) {
	t.Helper()
	for i, e := range s.events {
		if e.Run != s.events[0].Run {
			t.Errorf("runs %s and %s in one stream", s.events[0].Run, e.Run)
		}
		if last := i == len(s.events)-1; last != (e.Event == "result") {
			t.Errorf("event %d of %d: %v", i+1, len(s.events), e)
		}
	}
	if last := s.events[len(s.events)-1]; last.Reason != "ok" {
		t.Errorf("the result is %q", last.Reason)
	}
	done := map[[2]string]bool{} // a step that is tried again begins twice
	for _, e := range s.of("step.done") {
		done[[2]string{e.Host, e.Step}] = true
	}
	if len(done) == 0 {
		t.Error("no step was done")
	}
	for _, e := range s.of("step.start") {
		if !done[[2]string{e.Host, e.Step}] {
			t.Errorf("began and was not done: %v", e)
		}
	}
	for _, h := range hosts {
		if n := s.perHost("connect")[c.addr[h]]; n != 1 {
			t.Errorf("%s: %d connections, want 1", h, n)
		}
	}
}

// quietKubeadm wants nothing told of what kubeadm warns of in the lab: kgpu says itself, or has answered, that the hosts have cgroup v1
// and a containerd before 2, and the rest it causes.
func quietKubeadm(t *testing.T, s *session) {
	t.Helper()
	for _, e := range s.of("warning") {
		if strings.Contains(e.Text, ": kubeadm: ") {
			t.Errorf("it warns: %s", e.Text)
		}
	}
	said := 0
	for _, e := range s.of("log") {
		if strings.Contains(e.Text, `The recommended value for "bindAddress"`) {
			said++
		}
	}
	if said == 0 {
		t.Error("kubeadm join says other things than this test knows")
	}
}

// repair breaks one setting: kgpu plan names it, and kgpu up mends it and nothing else.
func (c *cluster) repair(t *testing.T) {
	kgpu(t, 0, "plan", c.inventory)
	c.exec(t, "w1", "sysctl -qw net.ipv4.ip_forward=0")
	s := kgpu(t, 2, "plan", "--output", "json", c.inventory)
	var plan struct {
		Steps []struct{ Host, Step, Reason string }
	}
	if err := json.Unmarshal(s.stdout.Bytes(), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Steps) != 1 || plan.Steps[0].Host != c.addr["w1"] || plan.Steps[0].Step != "os/sysctl" ||
		!strings.Contains(plan.Steps[0].Reason, "net.ipv4.ip_forward") {
		t.Errorf("the plan has %+v", plan.Steps)
	}
	wantSteps(t, c.did(c.up(t)), "w1 os/sysctl")
	if got := c.exec(t, "w1", "sysctl -n net.ipv4.ip_forward"); got != "1" {
		t.Errorf("the setting is %s", got)
	}
	kgpu(t, 0, "plan", c.inventory)
}

// addWorker adds a host to the file and to the cluster, and leaves the other workers alone.
func (c *cluster) addWorker(t *testing.T) {
	c.lab.up(t, "--workers", "3")
	fresh := c.snapshot(t, "w3")
	before, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	logins := map[string]string{}
	for _, h := range []string{"w1", "w2"} {
		logins[h] = c.logins(t, h)
	}
	add := func() *session {
		return kgpu(t, 0, "add-worker", "--inventory", c.inventory, "--output", "json", c.addr["w3"])
	}
	must(t, "join", func(t *testing.T) {
		s := add()
		for _, kind := range []string{"connect", "command"} {
			for host := range s.perHost(kind) {
				if host != c.addr["cp1"] && host != c.addr["w3"] {
					t.Errorf("%s event of %s", kind, host)
				}
			}
		}
		for h, n := range logins {
			if got := c.logins(t, h); got != n {
				t.Errorf("%s: %s logins, want %s as before", h, got, n)
			}
		}
		c.ready(t, "cp1", "w1", "w2", "w3")
		c.noSecrets(t, s, "cp1", "w3")
	})
	after, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.DeleteFunc(lines(string(after)), func(line string) bool { return strings.Contains(line, c.addr["w3"]) })
	if !slices.Equal(kept, lines(string(before))) || len(kept) == len(lines(string(after))) {
		t.Errorf("the inventory was\n%s\nand is\n%s", before, after)
	}
	t.Run("again", func(t *testing.T) {
		wantSteps(t, c.did(add()))
		if again, err := os.ReadFile(c.inventory); err != nil || string(again) != string(after) {
			t.Errorf("the inventory changed once more: %v\n%s", err, again)
		}
	})
	t.Run("reset by the node's name", func(t *testing.T) {
		s := kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory, "--output", "json", "w3")
		wantSteps(t, c.did(s), "cp1 node/delete/w3", "cp1 node/drain/w3", "w3 host/reset")
		c.ready(t, "cp1", "w1", "w2")
		c.unchanged(t, fresh)
	})
}

// logins is how often somebody logged in by ssh.
func (c *cluster) logins(t *testing.T, host string) string {
	t.Helper()
	return c.exec(t, host, "journalctl --no-pager -o cat -t sshd -t sshd-session -t sshd-auth | grep -c 'Accepted publickey' || :")
}

// resetRefused does not confirm: nothing happens.
func (c *cluster) resetRefused(t *testing.T) {
	before := c.snapshot(t, "cp1", "w1", "w2")
	for _, answer := range []string{"", "yes\n"} {
		s := start(t, answer, "reset", "--inventory", c.inventory)
		if code := s.wait(t); code != 3 {
			t.Errorf("answer %q: exit status %d, want 3", answer, code)
		}
		if !strings.Contains(s.stderr.String(), "nothing was changed") {
			t.Errorf("answer %q: %s", answer, s.stderr.String())
		}
	}
	c.unchanged(t, before)
	c.ready(t, "cp1", "w1", "w2")
}
