package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// containerdLife is up, up again, a repair.
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
	t.Run("a containerd of old", func(t *testing.T) { // that w1 and w2 had before kgpu
		if said := kgpu(t, 0, "plan", c.inventory).stdout.String(); strings.Count(said, "HOST_CONTAINERD_OLD") != 1 || !strings.Contains(said, c.addr["w1"]+", "+c.addr["w2"]+": containerd is 1.7.") {
			t.Errorf("the plan says\n%s", said)
		}
	})
	t.Run("up again, and a reset that is refused", func(t *testing.T) {
		c.nothingIsDifferent(t, []string{"cp1", "w1", "w2"}, c.resetRefused)
		c.ready(t, "cp1", "w1", "w2")
	})
	t.Run("repair", c.repair)
}

// imageVolume wants a pod to see the files of an image: what only a containerd from 2.1 on has, which kgpu takes where it can be had.
func (c *cluster) imageVolume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: v1
kind: Pod
metadata: {name: image-volume}
spec:
  restartPolicy: Never
  containers:
  - {name: ls, image: "docker.io/library/busybox:1.37", command: [netbox, ls, /files], volumeMounts: [{name: files, mountPath: /files}]}
  volumes: [{name: files, image: {reference: "registry.k8s.io/lab/netbox:1"}}]
`), 0o644); err != nil {
		t.Fatal(err)
	}
	c.k(t, "apply", "-f", file)
	c.k(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/image-volume", "--timeout=150s")
	if said := c.k(t, "logs", "image-volume"); !strings.Contains(said, "netbox") {
		t.Errorf("the pod sees %q", said)
	}
	c.k(t, "delete", "pod", "image-volume")
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

// resetRefused does not confirm.
func (c *cluster) resetRefused(t *testing.T) {
	for _, answer := range []string{"", "yes\n"} {
		s := start(t, answer, "reset", "--inventory", c.inventory)
		if code := s.wait(t); code != 3 {
			t.Errorf("answer %q: exit status %d, want 3", answer, code)
		}
		if !strings.Contains(s.stderr.String(), "nothing was changed") {
			t.Errorf("answer %q: %s", answer, s.stderr.String())
		}
	}
}
