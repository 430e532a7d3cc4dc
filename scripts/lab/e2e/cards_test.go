package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// planWithoutCUDA wants none of it in the plan of an inventory that says so.
func (l *lab) planWithoutCUDA(t *testing.T) {
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.forCards() + "gpu: {cuda: none}\n",
		hosts: []string{l.host("cp1", ""), l.host("w1", "")}}
	s := kgpu(t, 2, "plan", "--output", "json", l.write(t, t.TempDir(), d))
	if out := s.stdout.String(); strings.Contains(out, "cuda-toolkit") || !strings.Contains(out, "no CUDA: the inventory says so") {
		t.Errorf("the plan is\n%s", out)
	}
}

// cards follows a cluster with cards of two architectures, which this run made: drivers, container toolkit and device plugin came,
// every card is proven by a pod of its own and told of by labels, the notebook computes on one, a second run changes nothing, and cards can
// be shared.
func (c *cluster) cards(t *testing.T, made *session) {
	t.Run("up", func(t *testing.T) {
		c.ready(t, "cp1", "w1", "w2")
		c.offers(t, "cp1= w1=2 w2=1")
		c.proven(t, made, 3)
		c.hasCUDA(t, made, "w1", "w2")
		c.labelled(t, "w1", map[string]string{
			"gpu.product": "NVIDIA-A100-SXM4-40GB", "gpu.memory": "40960", "gpu.count": "2", "gpu.replicas": "1", "gpu.compute.major": "8",
			"cuda.driver-version.full": "595.91.07", "cuda.runtime-version.full": "13.2", "mig.capable": "true",
		})
		c.labelled(t, "w2", map[string]string{"gpu.product": "Tesla-T4", "gpu.count": "1", "gpu.family": "turing", "mig.capable": "false"})
		c.notebook(t, made)
	})
	t.Run("smoke while the notebook has its card", func(t *testing.T) {
		s := kgpu(t, 0, "smoke", "--output", "json", c.inventory)
		c.proven(t, s, 3)
		c.notebook(t, s)
		seen, ofNotebook := 0, regexp.MustCompile(`  the notebook \(CUDA [0-9.]+, [0-9.]+ ms\)$`)
		for _, e := range s.of("proof") {
			if ofNotebook.MatchString(e.Text) {
				seen++
			}
		}
		if seen != 1 {
			t.Errorf("%d cards are seen by the notebook, want 1: %v", seen, s.of("proof"))
		}
	})
	t.Run("up again", func(t *testing.T) { c.nothingIsDifferent(t, []string{"cp1", "w1", "w2"}) })
	t.Run("a pod has what it asked for", c.podsWithCards)
	t.Run("examples", c.examples)
	must(t, "what was deleted by mistake comes back", func(t *testing.T) { c.restored(t, 3, "w1", "w2") })
	must(t, "backups by a timer", c.scheduled)
	t.Run("cards that pods share", c.sharedCards)
	t.Run("for people", func(t *testing.T) {
		long(t)
		said := kgpu(t, 0, "smoke", c.inventory).stdout.String()
		if want := "/?token=" + c.notebookToken(t) + "\n"; !strings.Contains(said, want) {
			t.Error("kgpu smoke does not say where the notebook is")
		}
	})
}

// undisturbed wants a pod to run on with its cards while kgpu looks at everything once more, and where containers need not end
// for it, while kgpu puts back files of its own that were changed, as it does after an upgrade.
func (c *cluster) undisturbed(t *testing.T, pod string) {
	t.Helper()
	state := func() string {
		return c.k(t, "exec", pod, "--", "nvidia-smi", "-L") + "\n" +
			c.k(t, "get", "pod", pod, "-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
	}
	before := state()
	c.up(t)
	if c.exec(t, "w1", "command -v docker || :") == "" {
		const dropIn = "/etc/containerd/conf.d/50-kgpu.toml"
		c.exec(t, "w1", "echo '# of another version' >>"+dropIn)
		s := c.up(t)
		wantSteps(t, c.did(s), "cp1 gpu/proven", "cp1 gpu/ready", "cp1 gpu/smoke", "w1 runtime/containerd")
		// The kubelet, whose connection ended with the restart, tries again when gRPC lets it, after a second or so.
		c.exec(t, "cp1", "for i in $(seq 20); do HOME=/proc/none kubectl --kubeconfig /etc/kubernetes/admin.conf exec "+pod+" -- true && exit; sleep 1; done; exit 1")
	}
	if after := state(); after != before {
		t.Errorf("the pod %s was\n%s\nbefore kgpu up, and is\n%s\nafter it", pod, before, after)
	}
}

// forCards is what an inventory of hosts with cards says of the lab.
func (l *lab) forCards() string {
	return l.repositories() + "preflight: {ignore: [HOST_DISK_FULL]} # the lab's CUDA has none of its gigabytes\n"
}

// hasCUDA wants the toolkit on the hosts, and that it came when every card was proven.
func (c *cluster) hasCUDA(t *testing.T, s *session, hosts ...string) {
	t.Helper()
	for _, h := range hosts {
		if said := c.exec(t, h, "/usr/local/cuda/bin/nvcc --version && dpkg-query -W cudnn9-cuda-13"); !strings.Contains(said, "release 13.") {
			t.Errorf("nvcc on %s says %s", h, said)
		}
	}
	proven, begun := -1, 0
	for i, e := range s.events {
		switch {
		case e.Event == "proof":
			proven = i
		case e.Event == "step.start" && e.Step == "gpu/cuda":
			begun++
			if proven < 0 {
				t.Error("CUDA came before the cards were proven")
			}
		}
	}
	if begun != len(hosts) {
		t.Errorf("CUDA came to %d hosts, want %d", begun, len(hosts))
	}
}

// offers wants the nodes to have so many cards to give.
func (c *cluster) offers(t *testing.T, want string) {
	t.Helper()
	const template = `go-template={{range .items}}{{.metadata.name}}={{with index .status.allocatable "nvidia.com/gpu"}}{{.}}{{end}} {{end}}`
	if got := strings.TrimSpace(c.k(t, "get", "nodes", "-o", template)); got != want {
		t.Errorf("cards that nodes offer: %s, want %s", got, want)
	}
}

// awaitOffer returns when the nodes have so many cards to give: the kubelet tells it now and then.
func (c *cluster) awaitOffer(t *testing.T, want string) {
	t.Helper()
	for node := range strings.FieldsSeq(want) {
		if name, cards, _ := strings.Cut(node, "="); cards != "" {
			c.k(t, "wait", "node/"+name, `--for=jsonpath={.status.allocatable.nvidia\.com/gpu}=`+cards, "--timeout=120s")
		}
	}
	c.offers(t, want)
}

var uuidOfCard = regexp.MustCompile(`GPU-[0-9a-f-]{36}`)

// proven wants a proof of exactly the cards that the workers' own nvidia-smi lists, for everybody who logs in there: so many.
func (c *cluster) proven(t *testing.T, s *session, cards int) {
	t.Helper()
	var want []string
	for h := range c.addr {
		if h == "cp1" {
			continue
		}
		for _, uuid := range uuidOfCard.FindAllString(c.verb(t, "ssh", h, "nvidia-smi", "-L"), -1) {
			want = append(want, c.addr[h]+" "+uuid)
		}
	}
	slices.Sort(want)
	got := s.cards()
	if len(want) != cards || !slices.Equal(got, want) {
		t.Errorf("proven are %q, the hosts have %q", got, want)
	}
}

// cards are those that a run proved, each behind the address of its host.
func (s *session) cards() []string {
	var out []string
	for _, e := range s.of("proof") {
		if uuid := uuidOfCard.FindString(e.Text); uuid != "" {
			out = append(out, e.Host+" "+uuid)
		}
	}
	slices.Sort(out)
	return out
}

// notebookComputes is what the notebook's proof says: what it did on which device, how long, and by what. The lab's image has no
// framework.
var notebookComputes = regexp.MustCompile(`^the notebook fills and reads memory on cuda:0 (NVIDIA|Tesla) [A-Z0-9a-z -]+ in [0-9]+\.[0-9]{3} ms \(CUDA [0-9]+\.[0-9]+\)$`)

// notebook wants among the proofs that the notebook computes, its port open, and its token nowhere but in its Secret.
func (c *cluster) notebook(t *testing.T, s *session) {
	t.Helper()
	if !slices.ContainsFunc(s.of("proof"), func(e event) bool { return notebookComputes.MatchString(e.Text) }) {
		t.Fatalf("no notebook is proven: %v", s.of("proof"))
	}
	secret := c.notebookToken(t)
	if said := s.stdout.String() + s.stderr.String(); strings.Contains(said, secret) {
		t.Error("the token is among the events")
	}
	for _, h := range []string{"cp1", "w1", "w2"} {
		if found := c.exec(t, h, "grep -rl "+secret+" /var/lib/kgpu || :"); found != "" {
			t.Errorf("%s: the token is left in %s", h, found)
		}
		if found := c.exec(t, h, "journalctl --no-pager -o cat | grep -c "+secret+" || :"); strings.TrimSpace(found) != "0" {
			t.Errorf("%s: the journal has the token", h)
		}
	}
	// Who has no token gets no kernel.
	for _, h := range []string{"cp1", "w1"} {
		port := "curl -s -o /dev/null -w '%{http_code}' http://" + c.addr[h] + ":30061"
		if got := c.exec(t, "cp1", port+"/api"); got != "200" {
			t.Errorf("the port of %s answers %s", h, got)
		}
		if got := c.exec(t, "cp1", port+"/api/kernels"); got != "403" {
			t.Errorf("the notebook on %s answers %s to who has no token", h, got)
		}
	}
}

func (c *cluster) notebookToken(t *testing.T) string {
	t.Helper()
	return c.k(t, "-n", "kgpu-notebook", "get", "secret", "notebook", "-o", "go-template={{.data.token | base64decode}}")
}

// podsWithCards looks inside pods: who asks for two cards has two, who asks for none has none, and a third card on the
// same node does not exist.
func (c *cluster) podsWithCards(t *testing.T) {
	run := func(name, limits string) {
		c.k(t, "run", name, "--image=nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04", "--restart=Never", "--overrides",
			`{"spec":{"nodeSelector":{"kubernetes.io/hostname":"w1"},"containers":[{"name":"`+name+`","image":"nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04",`+
				`"command":["sleep","infinity"],"resources":{"limits":{`+limits+`}}}]}}`)
	}
	// Who wants the notebook's card back stops it, and kgpu up leaves it so.
	kgpu(t, 0, "notebook", "--stop", "--inventory", c.inventory)
	run("none", "")
	run("two", `"nvidia.com/gpu":"2"`)
	c.k(t, "wait", "--for=condition=Ready", "pod/none", "pod/two", "--timeout=120s")
	run("third", `"nvidia.com/gpu":"1"`)
	if n := len(uuidOfCard.FindAllString(c.k(t, "exec", "two", "--", "nvidia-smi", "-L"), -1)); n != 2 {
		t.Errorf("who asked for two cards sees %d", n)
	}
	if devices := c.k(t, "exec", "none", "--", "sh", "-c", "ls /dev | grep nvidia || true"); devices != "" {
		t.Errorf("who asked for no card has %s", devices)
	}
	c.k(t, "wait", "--for=condition=PodScheduled=false", "pod/third", "--timeout=60s")
	c.undisturbed(t, "two")
	c.k(t, "delete", "pod", "none", "two", "third", "--grace-period=1", "--timeout=60s")
}
