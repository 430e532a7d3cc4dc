package plan

import (
	"path"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// What else the file asks for beside another version of Kubernetes. A proxy restarts docker, a driver drains nodes with cards.
const (
	aProxy       = "proxy: {https: \"http://10.0.0.1:3128\"}\n"
	anotherCards = "gpu: {driver: {branch: 595}}\n"
)

// TestUpgradeBesideOtherChanges: the file changes in several ways at once. All of it comes to its end. Of several control planes none is
// drained before the last one has changed, as it may reboot while etcd restarts on another: what restarts docker is a round before.
func TestUpgradeBesideOtherChanges(t *testing.T) {
	for _, runtime := range []string{"containerd", "docker"} {
		for name, hosts := range map[string]string{"one": threeHosts, "three": fourHosts[strings.Index(fourHosts, "hosts:"):]} {
			for _, change := range []string{aProxy, anotherCards, aProxy + anotherCards} {
				t.Run(strings.Join([]string{runtime, name, change}, " "), func(t *testing.T) {
					with := func(version, more string) string {
						settings := "runtime: " + runtime + "\nnetwork: flannel\nkubernetes: {version: " + version
						if name == "three" {
							return "cluster: lab\n" + settings + ", virtualIP: 10.0.0.100}\n" + hosts + more
						}
						return hosts + settings + "}\n" + more
					}
					c := scenario{before: with("1.36.2", ""), inventory: with("1.36.3", change), limit: 1, facts: func(f map[string]*facts.Host) {
						f["cp1"].NVIDIA.Cards, f["w1"].NVIDIA.Cards = cards("20b0"), cards("20b0", "20b0")
					}}
					inv, seen, g := c.planned(t)
					before := len(g.Rounds) > 0
					restarts := runtime == "docker" && strings.Contains(change, aProxy)
					if before != (restarts && name == "three") {
						t.Errorf("%q come later", g.Rounds)
					}
					if before {
						if g.Has("cluster/upgrade") || len(hostsOf(g, "os/proxy")) != 4 {
							t.Errorf("the round before is %q", refs(g))
						}
						carryOut(t, inv, seen, g.Steps)
						if g = planUp(t, inv, seen); len(g.Rounds) > 0 || !g.Has("cluster/upgrade") {
							t.Fatalf("%q come later still: %q", g.Rounds, refs(g))
						}
						g.LimitUnavailable(1)
					}
					if !restarts || before {
						drainsNoneBeforeUpgrade(t, g)
					}
					upgradeOn(t, inv, seen, g)
					for _, id := range []string{"cp1", "w1"} {
						if branch := machine.BranchOf(seen[id].NVIDIA.Loaded); strings.Contains(change, anotherCards) != (branch == 595) {
							t.Errorf("%s has driver %d", id, branch)
						}
					}
				})
			}
		}
	}
}

// drainsNoneBeforeUpgrade fails where a node may be drained before a control plane has changed.
func drainsNoneBeforeUpgrade(t *testing.T, g *graph.Graph) {
	t.Helper()
	if !g.Has("cluster/upgrade") {
		t.Fatalf("no control plane is upgraded: %q", refs(g))
	}
	for _, s := range g.Steps {
		for _, plane := range hostsOf(g, "cluster/upgrade") {
			if path.Dir(s.ID) == "node/drain" && !waitsFor(g, s, graph.Ref{Host: plane, ID: "cluster/upgrade"}) {
				t.Errorf("%s does not wait until %s has changed", s.Ref, plane)
			}
		}
	}
}

// TestBusyNodesKeepTheirDriver: with pods that are not to be disturbed a node keeps all that it would be drained for.
func TestBusyNodesKeepTheirDriver(t *testing.T) {
	for runtime, want := range map[string]string{"containerd": "at driver 580.173.02 and at Kubernetes 1.36.2", "docker": "without os/proxy and at driver 580.173.02 and at Kubernetes 1.36.2"} {
		c := upgrade("", runtime, "1.36.2", "1.36.3")
		c.inventory += aProxy + anotherCards
		c.harm = func(_ *testing.T, seen map[string]*facts.Host) { seen["w1"].Busy = []string{"ml/train-0"} }
		inv, seen, g := c.planned(t)
		for {
			if g.Has("node/drain/w1") || slices.ContainsFunc(g.Steps, func(s *graph.Step) bool { return s.Host == "w1" && Kinds.Of(s.ID).Disrupts }) {
				t.Fatalf("%s: %q", runtime, refs(g))
			}
			carryOut(t, inv, seen, g.Steps)
			if g = planUp(t, inv, seen); g.Empty() {
				break
			}
			g.LimitUnavailable(1)
		}
		said := "w1: its node stays " + want + " for now, because pods with cards run there: ml/train-0; the next `kgpu up` goes on"
		if !slices.Contains(g.Warnings, said) {
			t.Errorf("%s: %q", runtime, g.Warnings)
		}
		seen["w1"].Busy = nil
		g = planUp(t, inv, seen)
		if !g.Has("node/drain/w1") || g.Has("node/drain/w2") {
			t.Errorf("%s, when they have ended: %q", runtime, refs(g))
		}
		g.LimitUnavailable(1)
		upgradeOn(t, inv, seen, g)
	}
}

// TestBusyNodeWithAStaleModule: a library that somebody replaced beneath pods that run is left alone, too.
func TestBusyNodeWithAStaleModule(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd, twoWorkers)
	seen["w1"].NVIDIA.Loaded, seen["w1"].BootID, seen["w1"].Busy = "580.95.05", "5f0c", []string{"ml/train-0"}
	if g := planUp(t, inv, seen); g.Has("node/drain/w1") || g.Has("driver/load") || g.Has("driver/reboot") || len(g.Warnings) != 1 {
		t.Errorf("%q, %q", refs(g), g.Warnings)
	}
	seen["w1"].Busy = nil
	if g := planUp(t, inv, seen); !g.Has("node/drain/w1") {
		t.Errorf("when they have ended: %q", refs(g))
	}
}
