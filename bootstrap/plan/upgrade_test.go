package plan

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// upgrade is what becomes of a cluster with cards whose inventory names another version.
func upgrade(name, runtime, from, to string) scenario {
	with := func(version string) string {
		return threeHosts + "runtime: " + runtime + "\nnetwork: flannel\nkubernetes: {version: " + version + ", allowEndOfLife: true}\n"
	}
	return scenario{name: name, before: with(from), facts: twoWorkers, inventory: with(to), limit: 1}
}

var upgrades = []scenario{
	upgrade("a patch, containerd", "containerd", "1.36.2", "1.36.3"),
	upgrade("a minor, containerd", "containerd", "1.35.4", "1.36.3"),
	upgrade("a minor, docker", "docker", "1.35.4", "1.36.3"),
	upgrade("two minors", "containerd", "1.35.4", "1.37.2"),
	upgradeOfPlanes("1.35.4", "1.36.3"),
}

// upgradeOfPlanes is the same of three control planes and a worker.
func upgradeOfPlanes(from, to string) scenario {
	with := func(version string) string { return strings.Replace(fourHosts, "1.36.3", version, 1) }
	return scenario{name: "three control planes", before: with(from), inventory: with(to), limit: 1}
}

// TestUpgrades writes down how a cluster comes to another version, its first round.
func TestUpgrades(t *testing.T) {
	writeTogether(t, "upgrades", upgrades)
	for _, c := range upgrades {
		t.Run(c.name, func(t *testing.T) {
			inv, seen, g := c.planned(t)
			upgradeOn(t, inv, seen, g)
		})
	}
}

// upgradeOn carries out rounds until nothing is left, and holds what is promised of each step: see carryOut.
func upgradeOn(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host, g *graph.Graph) {
	t.Helper()
	for range 5 {
		carryOut(t, inv, seen, g.Steps)
		if g = planUp(t, inv, seen); g.Empty() {
			for id, f := range seen {
				if v := machine.RunningVersion(seen["cp1"]); v != inv.Kubernetes.Version || !strings.HasPrefix(f.Packages["kubelet"].Version, v.String()+"-") {
					t.Errorf("%s has the kubelet %s, the API server is %s", id, f.Packages["kubelet"].Version, v)
				}
			}
			return
		}
		g.LimitUnavailable(1)
	}
	t.Errorf("it does not come to an end: %v", refs(g))
}

// carryOut carries out steps one after the other. One node at most is drained at a time, none changes that is not, and no kubelet is
// ever newer than the API server, nor more than a minor older.
func carryOut(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host, steps []*graph.Step) {
	t.Helper()
	nodes := func() []facts.Node { return seen["cp1"].Cluster.Nodes }
	for _, s := range steps {
		settle(t, inv, seen, &graph.Graph{Steps: []*graph.Step{s}})
		drained := map[string]bool{}
		for i := range nodes() {
			n := &nodes()[i]
			if path.Dir(s.ID) == "node/drain" && path.Base(s.ID) == n.Name {
				n.Labels[machine.DrainedLabel] = "kgpu"
			}
			if machine.IsDrained(n) {
				drained[n.Name] = true
			}
		}
		if len(drained) > 1 || s.ID == "kube/upgrade" && !drained[s.Host] {
			t.Fatalf("at %s: drained are %v", s.Ref, drained)
		}
		api := machine.RunningVersion(seen["cp1"])
		for _, f := range seen {
			if v := machine.RunningVersion(f); !v.IsZero() && v.Compare(api) < 0 {
				api = v
			}
		}
		for id, f := range seen {
			has, _, _ := strings.Cut(f.Packages["kubelet"].Version, "-")
			if v, err := catalog.ParseVersion(has); err != nil || v.Compare(api) > 0 || api.Minor-v.Minor > 1 {
				t.Fatalf("at %s: the API server is %s, the kubelet of %s is %s", s.Ref, api, id, has)
			}
		}
	}
}

// TestUpgradeGoesOn cuts an upgrade off after each of its steps, and in the middle of each: what is planned then is the rest.
func TestUpgradeGoesOn(t *testing.T) {
	for _, c := range []scenario{upgrade("", "containerd", "1.35.4", "1.36.3"), upgrade("", "docker", "1.35.4", "1.37.2"), upgradeOfPlanes("1.35.4", "1.36.3")} {
		_, _, whole := c.planned(t)
		for i, at := range whole.Steps {
			for _, within := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, in it: %t", c.inventory[len(c.inventory)-10:], at.Ref, within), func(t *testing.T) {
					inv, seen, g := c.planned(t)
					carryOut(t, inv, seen, g.Steps[:i])
					switch {
					case !within:
						carryOut(t, inv, seen, g.Steps[i:i+1])
					case at.ID == "cluster/upgrade": // the manifest is there, the rest is not
						seen[at.Host].ControlPlane.Version, seen[at.Host].Upgrading = "v"+at.Input.Values["version"], machine.UpgradingPlane
					case at.ID == "kube/upgrade": // the packages are there, the kubelet did not restart
						seen[at.Host].Upgrading = machine.UpgradingNode
						seen[at.Host].Packages["kubelet"] = facts.Package{Version: at.Input.Values["version"] + "-1.1", Held: true}
					}
					rest := planUp(t, inv, seen)
					rest.LimitUnavailable(1)
					for _, s := range rest.Steps {
						done := slices.ContainsFunc(g.Steps[:i], func(d *graph.Step) bool { return d.Ref == s.Ref })
						if done && slices.Contains([]string{"cluster/upgrade", "kube/upgrade", "kube/kubeadm"}, s.ID) && rest.Kubernetes == g.Kubernetes {
							t.Errorf("it would do again: %s", s.Ref)
						}
					}
					upgradeOn(t, inv, seen, rest)
				})
			}
		}
	}
}

// TestUpgradeRounds: kubeadm skips no minor. Nodes that a former round left come before the next one.
func TestUpgradeRounds(t *testing.T) {
	c := upgrade("", "containerd", "1.34.2", "1.37.1")
	inv, seen, g := c.planned(t)
	minor := func(n int) string { m, _ := catalog.Kubernetes(n); return m.Version().String() }
	first, later := "Kubernetes 1.34.2 becomes "+minor(35)+", node after node", []string{"Kubernetes " + minor(36), "Kubernetes 1.37.1"}
	if !slices.Equal(g.Rounds, later) || g.Kubernetes != first {
		t.Errorf("%q, %q", g.Kubernetes, g.Rounds)
	}
	carryOut(t, inv, seen, g.Steps)
	seen["w2"].Packages["kubelet"] = facts.Package{Version: "1.34.2-1.1", Held: true}
	seen["cp1"].Cluster.Nodes[2].Version = "v1.34.2"
	g = planUp(t, inv, seen)
	if len(g.Rounds) != 2 || !g.Has("node/drain/w2") || g.Has("node/drain/w1") || g.Has("cluster/upgrade") {
		t.Errorf("%q: %v", g.Rounds, refs(g))
	}
	upgradeOn(t, inv, seen, g)
}

// TestUpgradeOfSome: with --limit, the control plane and some workers come first, the others when they are asked for.
func TestUpgradeOfSome(t *testing.T) {
	inv, seen, _ := upgrade("", "containerd", "1.35.4", "1.36.3").planned(t)
	w2 := seen["w2"]
	delete(seen, "w2")
	g := planUp(t, inv, seen)
	g.LimitUnavailable(1)
	if g.Has("node/drain/w2") || !g.Has("node/drain/w1") {
		t.Errorf("%v", refs(g))
	}
	carryOut(t, inv, seen, g.Steps)
	seen["w2"] = w2
	g = planUp(t, inv, seen)
	if !g.Has("node/drain/w2") || g.Has("node/drain/w1") || g.Has("cluster/upgrade") ||
		g.Kubernetes != "Kubernetes 1.36.3 comes to the nodes that have an older one" {
		t.Errorf("%q: %v", g.Kubernetes, refs(g))
	}
	upgradeOn(t, inv, seen, g)
}

// TestUpgradeRefused: what Kubernetes, or etcd, does not support is not begun.
func TestUpgradeRefused(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		harm           func(*facts.Host)
		want           reason.ID // empty: it is planned
		said           string
	}{
		{"a node that nobody upgrades", "1.35.4", "1.36.3", func(f *facts.Host) {
			f.Cluster.Nodes = append(f.Cluster.Nodes, facts.Node{Name: "old", Version: "v1.32.9"})
		}, reason.KubernetesSkew, "the control plane is to run 1.36.3: node old has Kubernetes 1.32.9"},
		{"a node that is ahead", "1.35.4", "1.36.3", func(f *facts.Host) {
			f.Cluster.Nodes = append(f.Cluster.Nodes, facts.Node{Name: "new", Version: "v1.37.1"})
		}, reason.KubernetesSkew, "node new has Kubernetes 1.37.1"},
		{"a node three minors behind", "1.35.4", "1.36.3", func(f *facts.Host) {
			f.Cluster.Nodes = append(f.Cluster.Nodes, facts.Node{Name: "old", Version: "v1.33.9"})
		}, "", ""},
		{"an old etcd", "1.33.1", "1.34.2", func(f *facts.Host) { f.ControlPlane.Etcd = "3.5.21-0" }, reason.EtcdTooOld,
			"etcd is 3.5.21-0, and Kubernetes 1.34.2 comes with 3.6"},
		{"an etcd that is new enough", "1.33.1", "1.34.2", func(f *facts.Host) { f.ControlPlane.Etcd = "3.5.26-0" }, "", ""},
		{"an old etcd that stays", "1.33.1", "1.33.2", func(f *facts.Host) { f.ControlPlane.Etcd = "3.5.21-0" }, "", ""},
		{"a cluster that is too old", "1.29.1", "1.30.1", func(*facts.Host) {}, reason.KubernetesVersionChange, "kgpu upgrades clusters from Kubernetes 1.30 on"},
		{"back", "1.36.3", "1.35.4", func(*facts.Host) {}, reason.KubernetesVersionChange,
			"inventory.yaml:9:23: the cluster runs Kubernetes 1.36.3, and the inventory wants 1.35.4: a cluster does not go back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := upgrade("", "containerd", c.from, c.to)
			_, seen := settled(t, s.before, s.facts)
			c.harm(seen["cp1"])
			g, err := Up(decode(t, s.inventory), seen)
			if c.want == "" {
				if err != nil || !g.Has("cluster/upgrade") {
					t.Errorf("%v, %v", err, refs(g))
				}
				return
			}
			if e := (*reason.Error)(nil); !errors.As(err, &e) || e.ID != c.want || e.Host != "cp1" || !strings.Contains(e.Detail, c.said) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNoUpgradeUnasked: a cluster whose inventory names no version keeps what it has, unless an upgrade was begun.
func TestNoUpgradeUnasked(t *testing.T) {
	for begun, want := range map[string]bool{"": false, machine.UpgradingNode: true} {
		_, seen := settled(t, threeHosts+containerd+"kubernetes: {version: 1.36.3}\n")
		seen["w1"].Packages["kubelet"], seen["w1"].Upgrading = facts.Package{Version: "1.35.8-1.1", Held: true}, begun
		seen["cp1"].Cluster.Nodes[1].Version = "v1.35.8"
		if g := planUp(t, decode(t, threeHosts+containerd), seen); g.Has("kube/upgrade") != want {
			t.Errorf("begun %q: %v", begun, refs(g))
		}
	}
}

// TestUpgradeWithoutAPIServer: a control plane that lost its power in the middle comes up first, and the rest after it, with the proof of
// the cards: those of a node that is drained cannot be had before.
func TestUpgradeWithoutAPIServer(t *testing.T) {
	for version, want := range map[string][]string{"1.36.3": {"Kubernetes 1.36.3"}, "1.35.4": nil} {
		_, seen, _ := upgrade("", "containerd", "1.35.4", version).planned(t)
		seen["cp1"].Cluster = nil
		maps.DeleteFunc(seen["w1"].Packages, func(name string, _ facts.Package) bool { return strings.HasPrefix(name, "cuda-toolkit") })
		g := planUp(t, decode(t, upgrade("", "containerd", "", version).inventory), seen)
		if !slices.Equal(g.Rounds, want) || !g.Has("cluster/init") || g.Has("cluster/upgrade") || g.Has("kube/upgrade") || g.Has("kube/kubeadm") {
			t.Errorf("%s: %q, %v", version, g.Rounds, refs(g))
		}
		if last := want == nil; g.Has("gpu/ready") != last || g.Has("addon/notebook") != last || g.Has("gpu/cuda") != last {
			t.Errorf("%s: %v", version, refs(g))
		}
	}
}

// TestBusyNodesWait: nodes whose pods hold cards stay as they are, and no round begins that would leave them behind. They come later.
func TestBusyNodesWait(t *testing.T) {
	inv, seen, _ := upgrade("", "containerd", "1.35.4", "1.37.2").planned(t)
	seen["w1"].Busy = []string{"ml/train-0"}
	g := planUp(t, inv, seen)
	if g.Has("node/drain/w1") || !g.Has("node/drain/w2") || !g.Has("cluster/upgrade") || len(g.Rounds) != 1 {
		t.Errorf("%q, %v", g.Rounds, refs(g))
	}
	settle(t, inv, seen, g)
	g = planUp(t, inv, seen)
	want := "w1: its node stays at Kubernetes 1.35.4 for now, because pods with cards run there: ml/train-0; the next `kgpu up` goes on"
	if !g.Empty() || len(g.Rounds) > 0 || !slices.Contains(g.Warnings, want) {
		t.Errorf("%q, %v, %q", g.Rounds, refs(g), g.Warnings)
	}
	seen["w1"].Busy = nil
	g = planUp(t, inv, seen)
	if !g.Has("node/drain/w1") || g.Has("node/drain/w2") || g.Has("cluster/upgrade") || len(g.Rounds) != 1 {
		t.Errorf("%q, %v", g.Rounds, refs(g))
	}
	g.LimitUnavailable(1)
	upgradeOn(t, inv, seen, g)
}

// TestDrainTimeout: pods have as long as somebody gives them, and the step some time beyond that.
func TestDrainTimeout(t *testing.T) {
	_, _, g := upgrade("", "containerd", "1.36.2", "1.36.3").planned(t)
	g.LimitDrains(10 * time.Minute)
	for _, s := range g.Steps {
		if drain := path.Dir(s.ID) == "node/drain"; drain != (s.Timeout == 10*time.Minute+75*time.Second) {
			t.Errorf("%s has %s", s.Ref, s.Timeout)
		}
	}
}
