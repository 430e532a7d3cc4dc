package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// withVersion is the three hosts' inventory with that kubernetes.version; empty: none.
func withVersion(version string) string {
	if version == "" {
		return threeHosts
	}
	return threeHosts + "kubernetes: {version: " + version + ", allowEndOfLife: true}\n"
}

// TestRunningVersion is the rule of which version a cluster should run, after kgpu has come to know newer ones.
func TestRunningVersion(t *testing.T) {
	inv, seen := settled(t, withVersion("1.36.3"))
	for _, c := range []struct {
		name, version string
		newer         catalog.Version // that the catalog's newest patch is now
		harm          func(map[string]*facts.Host)
		wanted        string
		refused       string
		upgrades      string // what the plan says; if neither: nothing is planned
	}{
		{name: "no version", newer: catalog.Version{Major: 1, Minor: 36, Patch: 9}, wanted: "1.36.3"},
		{name: "no version, another default", newer: catalog.Version{Major: 1, Minor: 37, Patch: 4}, wanted: "1.36.3"},
		{name: "the minor", version: "1.36", newer: catalog.Version{Major: 1, Minor: 36, Patch: 9}, wanted: "1.36.3"},
		{name: "the very version", version: "1.36.3", wanted: "1.36.3"},
		{name: "another patch", version: "1.36.4", wanted: "1.36.4", upgrades: "Kubernetes 1.36.3 becomes 1.36.4, node after node"},
		{name: "an older patch", version: "1.36.1", wanted: "1.36.1", refused: "the cluster runs Kubernetes 1.36.3, and the inventory wants 1.36.1: a cluster does not go back to an older version"},
		{name: "another minor", version: "1.37", wanted: "1.37.2", upgrades: "Kubernetes 1.36.3 becomes 1.37.2, node after node"},
		{name: "an older minor", version: "1.35.8", wanted: "1.35.8", refused: "the cluster runs Kubernetes 1.36.3, and the inventory wants 1.35.8: a cluster does not go back to an older version"},
		{name: "no version, and the cluster's is not known", harm: func(f map[string]*facts.Host) { f["cp1"].ControlPlane.Version = "v1.99.0" },
			wanted: "1.36.3", refused: "the cluster runs Kubernetes 1.99.0, of which this kgpu knows nothing"},
		{name: "an image without a version, its kubelet's counts", version: "1.37.1", harm: func(f map[string]*facts.Host) { f["cp1"].ControlPlane.Version = "latest" },
			wanted: "1.37.1", upgrades: "Kubernetes 1.36.3 becomes 1.37.1, node after node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := decode(t, withVersion(c.version))
			if !c.newer.IsZero() {
				want.Kubernetes.Version = c.newer
			}
			there := seen
			if c.harm != nil {
				_, there = settled(t, withVersion("1.36.3"))
				c.harm(there)
			}
			if v := machine.SetOf(want, there).Versions; v.Wanted.String() != c.wanted {
				t.Errorf("it should run %s, not %s", v.Wanted, c.wanted)
			}
			g, err := Up(want, there)
			if c.refused != "" {
				refusesVersion(t, err, c.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if g.Kubernetes != c.upgrades || g.Empty() != (c.upgrades == "") {
				t.Errorf("it says %q: %v", g.Kubernetes, refs(g))
			}
			if v := machine.SetOf(want, there).Inventory.Kubernetes.Version; v != inv.Kubernetes.Version {
				t.Errorf("it is judged as %s", v)
			}
		})
	}
}

func refusesVersion(t *testing.T, err error, detail string) {
	t.Helper()
	e := (*reason.Error)(nil)
	if !errors.As(err, &e) || e.ID != reason.KubernetesVersionChange || e.Host != "cp1" || !strings.HasSuffix(e.Detail, detail) {
		t.Errorf("refused with %v, not: %s", err, detail)
	}
}

// installs is what the graph makes of each host's Kubernetes, and from the repository of which version.
func installs(g *graph.Graph) map[string]string {
	out := map[string]string{}
	for _, s := range g.Steps {
		switch s.ID {
		case "kube/packages":
			out[s.Host] += s.Input.Values["version"]
		case "repo/kubernetes":
			out[s.Host] += s.Title[strings.LastIndexByte(s.Title, ' ')+1:] + " "
		}
	}
	return out
}

// TestNewWorkerVersion: a worker gets the version of the cluster that it joins, in whatever way that came to be another than the catalog's.
func TestNewWorkerVersion(t *testing.T) {
	_, seen := settled(t, withVersion("1.35.2"))
	seen["w3"] = bare(13)
	seen["w3"].Packages["kubelet"] = facts.Package{Version: "1.36.3-1.1"} // a former life
	inv := decode(t, strings.Replace(threeHosts, "hosts:", "hosts:\n  - {address: 10.0.0.13, name: w3}", 1))
	g := planUp(t, inv, seen)
	if got := installs(g); len(got) != 1 || got["w3"] != "1.35 1.35.2" {
		t.Errorf("w3 and nobody else should get 1.35.2: %v", got)
	}
}

// TestSkewedNodes: a node of another version than its cluster keeps its packages, and that is told.
func TestSkewedNodes(t *testing.T) {
	for _, c := range []struct {
		name, host, version string
		harm                func(*facts.Host)
		steps               []string
		missing             string // what may come
	}{
		{name: "a worker that is behind", host: "w1", version: "1.36.2"},
		{name: "a worker of the minor before", host: "w1", version: "1.35.8", steps: []string{"w1 repo/kubernetes"}},
		{name: "a control plane upgraded by hand, its kubelet not yet", host: "cp1", version: "1.36.2"},
		{name: "a kubelet without a hold", host: "w1", version: "1.36.2", steps: []string{"w1 kube/packages"},
			harm: func(f *facts.Host) { f.Packages["kubelet"] = facts.Package{Version: "1.36.2-1.1"} }},
		{name: "a worker without kubeadm", host: "w1", version: "1.36.2", steps: []string{"w1 kube/packages"}, missing: "kubeadm",
			harm: func(f *facts.Host) { delete(f.Packages, "kubeadm") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := settled(t, threeHosts)
			f := seen[c.host]
			for _, name := range catalog.KubernetesPackages {
				f.Packages[name] = facts.Package{Version: c.version + "-1.1", Held: true}
			}
			if c.harm != nil {
				c.harm(f)
			}
			g := planUp(t, inv, seen)
			hasSteps(t, g, c.steps...)
			for _, s := range g.Steps {
				if v := s.Input.Values; s.ID == "kube/packages" && (v["version"] != c.version || v["missing"] != c.missing) {
					t.Errorf("%s would get %q %s", s.Host, v["missing"], v["version"])
				}
			}
			want := c.host + ": node " + c.host + " has Kubernetes " + c.version + ", and the cluster runs 1.36.3: with `kubernetes: {version: 1.36.3}` in the inventory, kgpu brings it along"
			if !slices.Contains(g.Warnings, want) {
				t.Errorf("nobody is told: %q", g.Warnings)
			}
		})
	}
}

// TestVersionOfHalfMade: a control plane that did not come to its end is made anew, as the inventory has it now.
func TestVersionOfHalfMade(t *testing.T) {
	_, seen := settled(t, withVersion("1.36.3"))
	f := seen["cp1"]
	f.Recorded, f.ControlPlane.Finished, f.Cluster = &facts.Record{Init: true, CAHash: "ca"}, false, nil
	inv := decode(t, withVersion("1.37.1"))
	g := planUp(t, inv, map[string]*facts.Host{"cp1": f})
	if got := installs(g)["cp1"]; got != "1.37 1.37.1" {
		t.Errorf("cp1 gets %q", got)
	}
}

// TestVersionsWithoutPlan: what needs no plan of up works while the inventory wants another version, by what runs.
func TestVersionsWithoutPlan(t *testing.T) {
	_, seen := settled(t, withVersion("1.34.2"))
	inv := decode(t, withVersion("1.37.1"))
	if _, err := Reset(inv, seen, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := Remove(inv, seen, []string{"w1"}, false); err != nil {
		t.Error(err)
	}
	if v := machine.SetOf(inv, seen).Inventory.Kubernetes; v.Version.String() != "1.34.2" || inv.Kubernetes.Version.String() != "1.37.1" || v.Pin != inventory.PinnedExact {
		t.Errorf("judged by %v, and the inventory became %v", v, inv.Kubernetes.Version)
	}
}

// TestVersionByHand: a cluster that was made by hand is taken over at its own version, unless the inventory wants another.
func TestVersionByHand(t *testing.T) {
	_, seen := settled(t, withVersion("1.35.2"))
	for _, f := range seen {
		f.Recorded = nil
	}
	c := seen["cp1"].ControlPlane
	c.Finished, c.PodCIDR, c.ServiceCIDR, c.Advertised = false, "10.244.0.0/16", "10.96.0.0/12", "10.0.0.10"
	nodes := seen["cp1"].Cluster.Nodes
	for i := range nodes {
		nodes[i].Version, nodes[i].Runtime = "v1.35.2", "docker://29.4.3"
	}
	for version, want := range map[string]string{"": "it fits the inventory", "1.36.3": "it cannot be adopted: its version is v1.35.2, the inventory's v1.36.3"} {
		s := verdicts(decode(t, withVersion(version)), seen, false)["cp1"]
		if !strings.HasSuffix(s.Detail, "; "+want) || s.Refused != reason.HostMadeByHand {
			t.Errorf("version %q: %s", version, s.Detail)
		}
	}
}

// TestToolsOfAnotherVersion: somebody upgrades a node by hand and has begun with kubeadm, as its manual says.
func TestToolsOfAnotherVersion(t *testing.T) {
	inv, seen := settled(t, threeHosts)
	seen["w1"].Packages["kubeadm"] = facts.Package{Version: "1.36.4-1.1", Held: true}
	nothingLeft(t, inv, seen)
}
