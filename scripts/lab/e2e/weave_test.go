package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestWeave needs images that the lab cannot make, and the kernel's dummy driver: a tester puts the images into the lab's folder
// for extra artefacts. Without both, everything up to the start of weave is tried. Reset leaves nothing in either case.
func TestWeave(t *testing.T) {
	long(t)
	l := newLab(t, nil, "--workers", "1")
	hosts := []string{"cp1", "w1"}
	d := desired{
		version: "1.36", runtime: "containerd", network: "weave", more: l.repositories(),
		hosts: []string{l.host("cp1", ""), l.host("w1", "")},
	}
	c := newCluster(t, l, d)
	fresh := l.snapshot(t, hosts...)
	reset := func(t *testing.T) {
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		l.unchanged(t, fresh)
	}
	images := l.hasWeave(t)
	driver := l.exec(t, "w1", "ip link add e2e type dummy 2>/dev/null && ip link delete e2e && echo yes || :") == "yes"
	var flags []string
	if !driver {
		flags = []string{"--ignore", "HOST_MODULE_MISSING"}
		t.Run("preflight", func(t *testing.T) {
			r := refusal{hosts: d.hosts, exit: 70}
			for _, h := range hosts {
				r.reasons = append(r.reasons, h+" HOST_MODULE_MISSING dummy")
			}
			l.refuses(t, d, r)
		})
	}
	up := append([]string{"up", "--output", "json", c.inventory}, flags...)
	if driver && images {
		must(t, "up", func(t *testing.T) { kgpu(t, 0, up...); c.ready(t, hosts...) })
		t.Run("proof", func(t *testing.T) { c.proof(t, "cp1", "w1") })
		t.Run("up again", func(t *testing.T) { c.nothingIsDifferent(t, hosts) })
		t.Run("reset", reset)
		return
	}
	s := start(t, "", up...)
	s.await(t, "it waited for weave", func(e event) bool {
		return e.Event == "wait" && e.Step == "cluster/ready" && strings.Contains(e.Text, "kube-system/daemonset/weave-net (0 of 2)")
	})
	for _, step := range []string{"addon/weave", "cluster/join", "cluster/nodes"} {
		if !slices.ContainsFunc(s.seen(), func(e event) bool { return e.Event == "step.done" && e.Step == step }) {
			t.Errorf("%s was not done", step)
		}
	}
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig") // up is not at its end, where it writes one
	kgpu(t, 0, "kubeconfig", "-i", c.inventory, "--file", c.kubeconfig)
	if !images {
		c.k(t, "-n", "kube-system", "wait", "--for=jsonpath={.status.initContainerStatuses[0].state.waiting.reason}=ImagePullBackOff", "pod", "-l", "name=weave-net", "--timeout=120s")
	}
	got := c.k(t, "-n", "kube-system", "get", "daemonset", "weave-net", "-o",
		`jsonpath={.spec.template.spec.containers[*].image} {.spec.template.spec.containers[0].env[?(@.name=="IPALLOC_RANGE")].value}`)
	if want := "docker.io/rajchaudhuri/weave-kube:2.9.0 docker.io/rajchaudhuri/weave-npc:2.9.0 10.244.0.0/16"; got != want {
		t.Errorf("weave-net has %s, want %s", got, want)
	}
	s.kill()
	t.Run("reset", reset)
	fmt.Printf("TestWeave stopped before weave ran: the machine has the dummy driver: %t, %s has the images: %t\n", driver, l.Extra, images)
}

// hasWeave says whether the tester's images have weave's.
func (l *lab) hasWeave(t *testing.T) bool {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(l.Extra, "images", "*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, path := range archives {
		m, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range m {
			have = append(have, image.RepoTags...)
		}
	}
	all := strings.Join(have, " ")
	return strings.Contains(all, "/weave-kube:") && strings.Contains(all, "/weave-npc:")
}
