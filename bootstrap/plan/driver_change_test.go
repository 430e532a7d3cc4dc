package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// driverVersion is the version that the packages of driver/install bring.
func driverVersion(input graph.Input) string {
	if strings.Contains(input.Values["packages"], "595") {
		return "595.91.07"
	}
	return "580.173.02"
}

const (
	containerd = "runtime: containerd\nnetwork: flannel\n"
	branch595  = threeHosts + containerd + "gpu: {driver: {branch: 595}}\n"
)

// workersWithCards is a cluster that is up, of which both workers have cards.
func workersWithCards(t *testing.T) map[string]*facts.Host {
	t.Helper()
	_, seen := settled(t, threeHosts+containerd, twoWorkers)
	return seen
}

// loseDriver takes a driver's packages from a host.
func loseDriver(f *facts.Host) {
	maps.DeleteFunc(f.Packages, func(name string, _ facts.Package) bool {
		_, ok := machine.InstalledDriver(f, name)
		return ok
	})
}

// other puts a driver of the CUDA repository on a host, which runs.
func other(f *facts.Host, version string, names ...string) {
	for _, name := range names {
		f.Packages[name] = facts.Package{Version: version + "-1ubuntu1"}
	}
	f.NVIDIA.Library, f.NVIDIA.Loaded, f.NVIDIA.GPUs = version, version, make([]facts.GPU, len(f.NVIDIA.Cards))
	f.Packages["nvidia-container-toolkit"] = facts.Package{Version: "1.17.8-1"}
	f.BootID = "5f0c"
}

// twoWorkers gives both workers cards.
func twoWorkers(f map[string]*facts.Host) {
	f["w1"].NVIDIA.Cards, f["w2"].NVIDIA.Cards, f["w2"].NVIDIA.Switches = cards("20b0", "20b0"), cards("2330"), 4
}

// driverChanges are hosts whose driver gives way to another, which are no nodes yet, or nodes.
var driverChanges = []scenario{
	{name: "wrong-driver-new-host", inventory: threeHosts + containerd + "gpu: {driver: {branch: 580}}\n", limit: 1,
		facts: func(f map[string]*facts.Host) {
			f["w1"].NVIDIA.Cards = cards("20b0", "20b0")
			other(f["w1"], "595.91.07", "nvidia-driver-pinning-595", "libnvidia-compute", "nvidia-dkms-open",
				"nvidia-persistenced", "nvidia-settings")
		}},
	{name: "wrong-driver-member", before: threeHosts + containerd, facts: twoWorkers, inventory: threeHosts + containerd, limit: 1,
		harm: func(_ *testing.T, seen map[string]*facts.Host) {
			f := seen["w1"]
			loseDriver(f)
			other(f, "470.256.02", "libnvidia-compute-470", "nvidia-dkms-470", "nvidia-utils-470")
			f.NVIDIA.Loaded, f.NVIDIA.GPUs = "", nil
		}},
	{name: "change-one-at-a-time", before: threeHosts + containerd, facts: twoWorkers, inventory: branch595, limit: 1},
	{name: "change-two-at-a-time", before: threeHosts + containerd, facts: twoWorkers, inventory: branch595, limit: 2},
	{name: "reboot-member", before: threeHosts + containerd, facts: twoWorkers, inventory: threeHosts + containerd, limit: 1,
		harm: func(_ *testing.T, seen map[string]*facts.Host) {
			seen["w1"].NVIDIA.Loaded, seen["w1"].BootID = "580.95.05", "5f0c"
			f := seen["w2"]
			f.NVIDIA = facts.NVIDIA{Cards: f.NVIDIA.Cards, Nouveau: facts.Nouveau{Loaded: true, Users: 1}}
			loseDriver(f)
		}},
	{name: "interrupted-change", before: threeHosts + containerd, facts: twoWorkers, inventory: branch595, limit: 1,
		harm: func(t *testing.T, seen map[string]*facts.Host) {
			inv, only := decode(t, branch595), map[string]*facts.Host{"cp1": seen["cp1"], "w2": seen["w2"]}
			settle(t, inv, only, planUp(t, inv, only))
			node := &seen["cp1"].Cluster.Nodes[2]
			node.Labels[gpuLabel], node.Labels[machine.DrainedLabel], node.Allocatable = "drained", "kgpu", nil
		}},
}

// TestDriverChange writes down how a driver gives way to another.
func TestDriverChange(t *testing.T) { writeDown(t, driverChanges, "driver/*", "node/*", "gpu/toolkit") }

// TestDriverThatStays looks at drivers that kgpu did not choose and does not replace.
func TestDriverThatStays(t *testing.T) {
	for _, c := range []struct {
		name, more string
		harm       func(*facts.Host)
		stays      bool
	}{
		{"as asked for", "gpu: {driver: {branch: 595}}\n", func(*facts.Host) {}, true},
		{"of the source asked for", "gpu: {driver: {source: cuda}}\n", func(*facts.Host) {}, true},
		{"of another source", "gpu: {driver: {source: ubuntu, branch: 595}}\n", func(*facts.Host) {}, false},
		{"of another flavour", "gpu: {driver: {source: cuda, branch: 595, flavour: proprietary}}\n", func(*facts.Host) {}, false},
		{"of another branch", "gpu: {driver: {source: cuda, branch: 580}}\n", func(*facts.Host) {}, false},
		{"that lost a card", "", func(f *facts.Host) { f.NVIDIA.GPUs = f.NVIDIA.GPUs[:1] }, true},
		{"that hangs", "", func(f *facts.Host) { f.NVIDIA.GPUs, f.NVIDIA.SMI = nil, 124 }, true},
		{"that sees nothing", "", func(f *facts.Host) { f.NVIDIA.GPUs, f.NVIDIA.SMI = nil, 9 }, false},
		{"that is not loaded", "", func(f *facts.Host) { f.NVIDIA.GPUs, f.NVIDIA.Loaded = nil, "" }, false},
		{"that does not run an older one of the cards", "", func(f *facts.Host) {
			f.NVIDIA.Cards[1].ID, f.NVIDIA.GPUs = "1db6", []facts.GPU{{Address: f.NVIDIA.Cards[0].Address}}
		}, true},
		{"that does not run one of the cards", "", func(f *facts.Host) { f.NVIDIA.Cards[1].ID, f.NVIDIA.GPUs = "1db6", f.NVIDIA.GPUs[:1] }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := decode(t, threeHosts+containerd+c.more), hostFacts(decode(t, threeHosts))
			f := seen["w1"]
			f.NVIDIA.Cards = cards("20b0", "20b0")
			other(f, "595.91.07", "nvidia-driver-pinning-595", "libnvidia-compute", "nvidia-dkms-open", "nvidia-persistenced")
			c.harm(f)
			choice, err := machine.ChooseDriver(inv, f)
			if err != nil {
				t.Fatal(err)
			}
			if choice.Keep != c.stays || len(choice.Replaces) > 0 == c.stays {
				t.Errorf("kept: %v, replaced: %q", choice.Keep, choice.Replaces)
			}
		})
	}
}

// TestDriverOfTwoArchitectures: the libraries for programs of 32 bits go with the branch that they are of; those of the branch that
// is wanted are not another driver.
func TestDriverOfTwoArchitectures(t *testing.T) {
	seen := hostFacts(decode(t, threeHosts))
	f := seen["w1"]
	f.NVIDIA.Cards = cards("20b0")
	other(f, "550.163.01", "libnvidia-compute-550", "libnvidia-compute-550:i386", "libnvidia-gl-550:i386")
	f.Packages["libnvidia-compute-580-server:i386"] = facts.Package{Version: "580.173.02-1"}
	choice, err := machine.ChooseDriver(decode(t, threeHosts+"gpu: {driver: {branch: 580}}\n"), f)
	if want := []string{"libnvidia-compute-550", "libnvidia-compute-550:i386", "libnvidia-gl-550:i386"}; err != nil || !slices.Equal(choice.Replaces, want) {
		t.Errorf("replaced: %q, want %q (%v)", choice.Replaces, want, err)
	}
}

// TestPaceAndSelection: so many nodes at a time are drained, whether the steps are chosen before or after, or parted.
// Who selects the steps of drivers does not get them without the drain.
func TestPaceAndSelection(t *testing.T) {
	drivers := func(g *graph.Graph) *graph.Graph {
		g, err := g.Select([]string{"driver/*"}, nil)
		if err != nil || !slices.Contains(refs(g), "cp1 node/drain/w1") || !slices.Contains(refs(g), "cp1 node/uncordon/w1") {
			t.Fatalf("selected are %q, %v", refs(g), err)
		}
		return g
	}
	waits := func(change func(*graph.Graph) *graph.Graph) []graph.Ref {
		g := planUp(t, decode(t, branch595), workersWithCards(t))
		return stepOf(change(g), "cp1", "node/drain/w2").Needs
	}
	want := waits(func(g *graph.Graph) *graph.Graph { g.LimitUnavailable(1); return drivers(g) })
	if !slices.Contains(want, graph.Ref{Host: "cp1", ID: "node/uncordon/w1"}) {
		t.Fatalf("the second node does not wait for the first: %v", want)
	}
	for name, change := range map[string]func(*graph.Graph) *graph.Graph{
		"chosen before": func(g *graph.Graph) *graph.Graph { g = drivers(g); g.LimitUnavailable(1); return g },
		"parted before": func(g *graph.Graph) *graph.Graph { g = g.InStages(graph.BeforeProof); g.LimitUnavailable(1); return g },
	} {
		if got := waits(change); !slices.Equal(got, want) {
			t.Errorf("%s: the second node waits for %v, want %v", name, got, want)
		}
	}
}

// TestDriverOfARunThatDied: a driver that kgpu installed gets what a run that died did not come to.
func TestDriverOfARunThatDied(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(*facts.Host)
		want []string
	}{
		{"nothing", func(*facts.Host) {}, nil},
		{"before its modules are loaded at boot", func(f *facts.Host) { delete(f.Files, machine.DriverModules) }, []string{"w2 driver/load", "w2 gpu/features"}},
		{"before its packages are held, and the host loads it at boot", func(f *facts.Host) {
			for name, p := range f.Packages {
				if _, ok := machine.InstalledDriver(f, name); ok {
					p.Held = false
					f.Packages[name] = p
				}
			}
			delete(f.Files, machine.DriverModules)
		}, []string{"w2 driver/install", "w2 driver/load", "w2 gpu/features"}},
		{"before the fabric manager", func(f *facts.Host) {
			maps.DeleteFunc(f.Packages, func(name string, _ facts.Package) bool { return strings.Contains(name, "fabricmanager") })
			delete(f.Units, "nvidia-fabricmanager.service")
		}, []string{"w2 driver/fabric", "w2 gpu/features"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := decode(t, threeHosts+containerd), workersWithCards(t)
			c.lose(seen["w2"])
			g := planUp(t, inv, seen)
			hasSteps(t, about(g, "w2"), c.want...)
			settles(t, inv, seen, g)
		})
	}
}

// TestDrainsAndThePlugin: the control plane is drained for a change, and so is a worker before it in the inventory; the device
// plugin waits for the control plane. Whoever was drained by a run that died goes first.
func TestDrainsAndThePlugin(t *testing.T) {
	hosts := "hosts: [{address: 10.0.0.11, name: w1}, {address: 10.0.0.10, name: cp1, role: control-plane}]\nruntime: docker\nnetwork: flannel\n"
	for name, drained := range map[string]string{"by this run": "", "by a run that died": "kgpu"} {
		t.Run(name, func(t *testing.T) {
			_, seen := settled(t, hosts, func(f map[string]*facts.Host) { f["w1"].NVIDIA.Cards = cards("20b0") })
			if drained != "" {
				for i := range seen["cp1"].Cluster.Nodes {
					if n := &seen["cp1"].Cluster.Nodes[i]; n.Name == "w1" {
						n.Labels[machine.DrainedLabel], n.Unschedulable = drained, true
					}
				}
			}
			inv := decode(t, hosts+"proxy: {http: \"http://proxy.example.com:3128\"}\ngpu: {timeSlicing: {replicas: 4}}\n")
			g := planUp(t, inv, seen)
			g.LimitUnavailable(1)
			before := map[graph.Ref]bool{}
			for _, s := range g.Steps {
				for _, need := range s.Needs {
					if !before[need] && g.Has(need.ID) && slices.ContainsFunc(g.Steps, func(s *graph.Step) bool { return s.Ref == need }) {
						t.Errorf("%s needs %s, which comes later", s.Ref, need)
					}
				}
				before[s.Ref] = true
			}
			if !g.Has("node/drain/cp1") || !g.Has("addon/device-plugin") {
				t.Errorf("nothing is shown: %s", describe(g))
			}
		})
	}
}

// Whatever changes of what gives pods their cards, a proof of them follows, which gpu/ready owes: at the end of the same run, or of the
// next one where that was cut off.
func TestWhatIsTouchedIsProven(t *testing.T) {
	for name, c := range map[string]struct {
		yaml  string
		touch func(cp1, w1 *facts.Host)
		first string // what it waits for
	}{
		"another driver": {yaml: "gpu: {driver: {branch: 595}}\n", first: "cp1 node/uncordon/w1"},
		"another driver, and the run was cut off when the node had pods again": {yaml: "gpu: {driver: {branch: 595}}\n", touch: func(_, w1 *facts.Host) {
			for name, p := range w1.Packages {
				if part, ok := machine.InstalledDriver(w1, name); ok && (part.Library || part.Flavour != "") {
					delete(w1.Packages, name)
					w1.Packages[strings.Replace(name, "580", "595", 1)] = facts.Package{Version: strings.Replace(p.Version, "580", "595", 1), Held: true}
				}
			}
			w1.NVIDIA.Loaded, w1.NVIDIA.Library = "595.91.07", "595.91.07"
			w1.NVIDIA.Features[driverFeature] = "595.91.07"
		}},
		"the driver is loaded": {touch: func(_, w1 *facts.Host) { w1.Units[persistence] = facts.Unit{} }, first: "w1 driver/load"},
		"the toolkit":          {touch: func(_, w1 *facts.Host) { w1.Toolkit = map[string]string{} }, first: "w1 gpu/toolkit"},
		"the plugin":           {touch: func(cp1, _ *facts.Host) { delete(cp1.Cluster.Workloads, devicePluginWorkload) }, first: "cp1 addon/device-plugin"},
		"the runtime":          {touch: func(_, w1 *facts.Host) { w1.Units["containerd.service"] = facts.Unit{} }, first: "w1 runtime/containerd"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := workersWithCards(t)
			if c.touch != nil {
				c.touch(seen["cp1"], seen["w1"])
			}
			g := planUp(t, decode(t, threeHosts+containerd+c.yaml), seen)
			ready := stepOf(g, "cp1", "gpu/ready")
			if ready == nil || ready.Input.Values["prove"] != "yes" || !strings.Contains(ready.Input.Values["nodes"], "w1 2 ") {
				t.Fatalf("nothing is proven after %q", refs(g))
			}
			if c.first != "" && !reaches(g, ready, c.first) {
				t.Errorf("gpu/ready does not wait for %s: %v", c.first, ready.Needs)
			}
		})
	}
}

// reaches reports whether a step waits for another one.
func reaches(g *graph.Graph, s *graph.Step, ref string) bool {
	return slices.ContainsFunc(s.Needs, func(need graph.Ref) bool {
		before := stepOf(g, need.Host, need.ID)
		return need.String() == ref || before != nil && reaches(g, before, ref)
	})
}
