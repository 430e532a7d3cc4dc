package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// theirDriver is how the owner of a host put branch 610 there.
const theirDriver = `
repository=https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64
curl -fsS "$repository/8793F200.pub" -o /etc/apt/keyrings/theirs.asc
echo "deb [signed-by=/etc/apt/keyrings/theirs.asc] $repository/ /" >/etc/apt/sources.list.d/theirs.list
apt-get update -q
apt-get install -q -y "linux-headers-$(uname -r)" nvidia-driver-pinning-610
apt-get install -q -y nvidia-kernel-open-dkms nvidia-driver-cuda libnvidia-ml1 libcuda1 nvidia-persistenced
apt-mark hold nvidia-driver-cuda
modprobe nvidia_uvm
`

// TestDrivers has a host whose owner put another driver there than the inventory asks for, and then a cluster whose
// inventory changes: one node at a time is drained, gets its driver and is let in again, while a pod with cards goes where
// cards are. What the owner had is there again after reset.
func TestDrivers(t *testing.T) {
	l := newLab(t, []string{"gpu"}, "--workers", "2", "--gpus", "w1=2xA100", "--gpus", "w2=2xB200,nvlink5")
	l.verb(t, "reboot", "w1") // it will again: what only the first boot does is not in the snapshot then
	l.verb(t, "kill", "w2")   // the same
	l.verb(t, "start", "w2")
	l.exec(t, "w1", theirDriver)
	theirs := l.snapshot(t, "cp1", "w1", "w2")
	d := desired{
		version: "1.36.2", runtime: "containerd", network: "flannel",
		hosts: []string{l.host("cp1", ""), l.host("w1", ""), l.host("w2", "")},
	}
	const branch = "gpu: {cuda: none, driver: {branch: 595}}\nnotebook: {framework: none}\n"
	d.more = l.repositories() + branch
	c := newCluster(t, l, d)
	must(t, "another driver is replaced, while kgpu is killed and a host loses power", func(t *testing.T) {
		begins := func(host, step string) func(event) bool {
			return func(e event) bool { return e.Event == "step.start" && e.Host == l.addr[host] && e.Step == step }
		}
		first := start(t, "", "up", "--output", "json", c.inventory)
		first.await(t, "w1 gets its driver", begins("w1", "driver/install"))
		first.kill()
		second := start(t, "", "up", "--output", "json", c.inventory)
		second.await(t, "w2 gets the container toolkit, or has it and joins", func(e event) bool {
			return begins("w2", "gpu/toolkit")(e) || begins("w2", "cluster/join")(e)
		})
		l.verb(t, "kill", "w2")
		l.verb(t, "start", "w2")
		second.await(t, "cards are proven", begins("cp1", "gpu/smoke"))
		second.kill()
		third := c.up(t)
		c.offers(t, "cp1= w1=2 w2=2")
		c.drivers(t, "595.91.07")
		if cards := third.cards(); len(cards) != 4 {
			t.Errorf("proven are %q, want four", cards)
		}
		var removed []string
		for _, s := range []*session{first, second, third} {
			for _, e := range s.steps("step.start", "driver/remove") {
				removed = append(removed, e.Host)
			}
			if drained := s.steps("step.start", "node/drain/"); len(drained) > 0 {
				t.Errorf("a host that was no node was drained: %v", drained)
			}
		}
		if slices.Sort(removed); !slices.Equal(slices.Compact(removed), []string{l.addr["w1"]}) {
			t.Errorf("a driver was removed on %q, want on w1", removed)
		}
	})
	c.startTraining(t)
	must(t, "another branch", func(t *testing.T) {
		d.more = l.repositories() + strings.Replace(branch, "595", "610", 1)
		l.write(t, filepath.Dir(c.inventory), d)
		c.asks(t, "up", c.inventory)
		s := kgpu(t, 0, "up", "--yes", "--output", "json", c.inventory)
		c.oneAtATime(t, s, "w1", "w2")
		c.drivers(t, "610.57.04")
		c.offers(t, "cp1= w1=2 w2=2")
		c.trains(t)
	})
	must(t, "back, where a program holds the module of a node, and another Kubernetes, while kgpu is killed", func(t *testing.T) {
		booted := l.exec(t, "w1", "echo 1 >/sys/module/nvidia_uvm/refcnt; cat /proc/sys/kernel/random/boot_id")
		stays := l.exec(t, "w2", "cat /proc/sys/kernel/random/boot_id")
		d.more = l.repositories() + branch
		l.write(t, filepath.Dir(c.inventory), d)
		c.upgradeKubernetes(t, "1.36.3", "at driver 610.57.04 and at Kubernetes 1.36.2")
		c.drivers(t, "595.91.07")
		if l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id") == booted {
			t.Error("w1 did not reboot")
		}
		if l.exec(t, "w2", "cat /proc/sys/kernel/random/boot_id") != stays {
			t.Error("w2 rebooted")
		}
	})
	t.Run("nothing is left to do", func(t *testing.T) { kgpu(t, 0, "plan", c.inventory) })
	t.Run("reset", func(t *testing.T) {
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		l.unchanged(t, theirs)
		if got := l.exec(t, "w1", "cat /sys/module/nvidia/version"); got != "610.57.04" {
			t.Errorf("the module of w1 is %s", got)
		}
	})
}

// comesWithItsKernel has a host for whose kernel no modules come built, which is older than that of the others: the newest of its line
// is to come with the driver, and a reboot to start it before the host becomes a node. What it returns wants that to have been done.
func (c *cluster) comesWithItsKernel(t *testing.T, host, other string) (done func(*testing.T)) {
	t.Helper()
	newest, older := c.exec(t, other, "uname -r"), c.exec(t, host, "apt-get -qq update; uname -r")
	if newest == older {
		t.Fatalf("%s runs kernel %s from the beginning", host, older)
	}
	planned := kgpu(t, 2, "plan", c.inventory).stdout.String()
	for _, want := range []string{"; with kernel " + newest + ", for which there are modules (none come built for kernel " + older, "reboot into kernel " + newest} {
		if !strings.Contains(planned, want) {
			t.Errorf("no %q in the plan:\n%s", want, planned)
		}
	}
	return func(t *testing.T) {
		t.Helper()
		if now := c.exec(t, host, "uname -r"); now != newest {
			t.Errorf("%s runs kernel %s, want %s", host, now, newest)
		}
		module := c.exec(t, host, "modinfo -F filename nvidia; dpkg-query -W 'nvidia-dkms-*' 2>/dev/null || :")
		if !strings.HasPrefix(module, "/lib/modules/"+newest+"/kernel/nvidia-") || strings.Contains(module, "dkms") {
			t.Errorf("the module of %s is %s", host, module)
		}
	}
}

// asks wants a run that would move a pod with cards to ask before, and to change nothing when it is not told yes.
func (c *cluster) asks(t *testing.T, args ...string) {
	t.Helper()
	before := c.k(t, "get", "pods", "-l", "app=training", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.phase}")
	for _, flags := range [][]string{nil, {"--output", "json"}} {
		s := start(t, "no\n", append(slices.Clone(args), flags...)...)
		if code := s.wait(t); code != 3 {
			t.Errorf("%q: exit status %d, want 3", flags, code)
		}
		said := s.stdout.String() + s.stderr.String()
		if !strings.Contains(said, "with cards: default/training-") || !strings.Contains(said, "nothing was changed") {
			t.Errorf("%q: kgpu says\n%s", flags, said)
		}
		if begun := s.of("step.start"); len(begun) > 0 {
			t.Errorf("%q: steps were begun: %v", flags, begun)
		}
	}
	if after := c.k(t, "get", "pods", "-l", "app=training", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.phase}"); after != before {
		t.Errorf("the pod was %s, and is %s", before, after)
	}
}

// training is a pod that takes all cards of a node, wherever they are.
const training = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: training}
spec:
  selector: {matchLabels: {app: training}}
  template:
    metadata: {labels: {app: training}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: training
          image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04
          command: [sleep, infinity]
          resources: {limits: {nvidia.com/gpu: 2}}
`

// startTraining has such a pod run.
func (c *cluster) startTraining(t *testing.T) {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "training.yaml")
	if err := os.WriteFile(manifest, []byte(training), 0o644); err != nil {
		t.Fatal(err)
	}
	c.k(t, "create", "-f", manifest)
	c.k(t, "rollout", "status", "deployment/training", "--timeout=120s")
}

// trains wants the pod to run again, with two cards.
func (c *cluster) trains(t *testing.T) {
	t.Helper()
	c.k(t, "rollout", "status", "deployment/training", "--timeout=120s")
	if n := len(uuidOfCard.FindAllString(c.k(t, "exec", "deployment/training", "--", "nvidia-smi", "-L"), -1)); n != 2 {
		t.Errorf("who asked for two cards sees %d", n)
	}
}

// drivers wants this version in the kernels of both workers, and its fabric manager, with what it wants, where there are switches only.
func (c *cluster) drivers(t *testing.T, version string) {
	t.Helper()
	for _, h := range []string{"w1", "w2"} {
		if got := c.exec(t, h, "cat /sys/module/nvidia/version; dpkg-query -W -f '${source:Upstream-Version}' libnvidia-ml1"); got != version+"\n"+version {
			t.Errorf("the module and the library of %s are %q, want %s", h, got, version)
		}
	}
	const fabric = "dpkg-query -W -f '${db:Status-Status} ${source:Upstream-Version}' nvidia-fabricmanager 2>/dev/null || :"
	if got := c.exec(t, "w1", fabric); strings.HasPrefix(got, "installed") {
		t.Errorf("w1 has no switches, and a fabric manager: %s", got)
	}
	if got := c.exec(t, "w2", fabric+"; echo; systemctl is-active nvidia-fabricmanager.service"); got != "installed "+version+"\nactive" {
		t.Errorf("the fabric manager of w2 is %q, want %s", got, version)
	}
	const waits = "nvidia-smi -q | grep -m 1 -A2 Fabric | tail -n 2 | tr -s ' ' | paste -sd,; lsmod | grep -c ^ib_umad; dpkg-query -W -f '${db:Status-Want} ${Package}\n' nvlsm infiniband-diags"
	if got := c.exec(t, "w2", waits); got != "State : Completed, Status : Success\n1\nhold infiniband-diags\nhold nvlsm" {
		t.Errorf("the fabric of w2 is %q", got)
	}
}

// oneAtATime wants these nodes to have been drained and let in again, one after the other, and the cards to be proven then.
func (c *cluster) oneAtATime(t *testing.T, s *session, nodes ...string) {
	t.Helper()
	var got, want []string
	for _, e := range s.seen() {
		if (e.Event == "step.start" && strings.HasPrefix(e.Step, "node/drain/")) || (e.Event == "step.done" && strings.HasPrefix(e.Step, "node/uncordon/")) {
			got = append(got, e.Step)
		}
	}
	for _, n := range nodes {
		want = append(want, "node/drain/"+n, "node/uncordon/"+n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes were drained and let in as %q, want %q", got, want)
	}
	if n := len(s.steps("step.done", "gpu/smoke")); n != 1 {
		t.Errorf("the cards were proven %d times", n)
	}
	if left := c.k(t, "get", "nodes", "-o", `go-template={{range .items}}{{if .spec.unschedulable}}{{.metadata.name}} {{end}}{{with index .metadata.labels "kgpu.dev/drained"}}{{.}} {{end}}{{end}}`); left != "" {
		t.Errorf("left drained: %s", left)
	}
}

// steps are the events of this kind of the steps whose ID begins so.
func (s *session) steps(kind, id string) []event {
	return slices.DeleteFunc(s.of(kind), func(e event) bool { return !strings.HasPrefix(e.Step, id) })
}
