package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

const (
	oldKernel = "6.8.0-31-generic"
	newKernel = "6.8.0-146-generic"
)

// TestOldKernels writes down what becomes of hosts with an old kernel, by what they say that apt can install: of such that are no
// nodes yet, and of nodes whose driver changes.
func TestOldKernels(t *testing.T) {
	none := facts.Way{Name: machine.WayBuilt, Why: "Unable to locate package linux-modules-nvidia-580-server-open-" + oldKernel}
	newer, noNewer := facts.Way{Name: machine.WayNewer, Kernel: newKernel}, facts.Way{Name: machine.WayNewer, Why: "it is not offered"}
	var out strings.Builder
	for _, c := range []struct {
		name     string
		ways     []facts.Way
		secure   bool
		switches int
		want     string // the last word of each step but those before and after
	}{
		{"modules come built", []facts.Way{{Name: machine.WayBuilt, Kernel: oldKernel}}, false, 0, "nouveau install load"},
		{"a newer kernel", []facts.Way{none, newer}, false, 0, "nouveau install reboot load"},
		{"a newer kernel, with NVSwitches", []facts.Way{none, newer}, false, 4, "nouveau install reboot load fabric"},
		{"a newer kernel under Secure Boot", []facts.Way{none, newer}, true, 0, "nouveau install reboot load"},
		{"DKMS", []facts.Way{none, noNewer, {Name: machine.WayDKMS, Kernel: oldKernel}}, false, 0, "nouveau install load"},
		{"no package lists yet", []facts.Way{none, noNewer, {Name: machine.WayDKMS, Why: "it is not offered"}}, false, 0, "nouveau install reboot load"},
	} {
		inv := decode(t, threeHosts+containerd)
		seen := hostFacts(inv)
		f := seen["w1"]
		f.Kernel, f.Ways, f.SecureBoot, f.NVIDIA.Cards, f.NVIDIA.Switches, f.BootID = oldKernel, c.ways, c.secure, cards("20b0"), c.switches, "5f0c"
		g, err := Up(inv, seen)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastWords(driverSteps(g)); got != c.want {
			t.Errorf("%s: planned %q, want %q", c.name, got, c.want)
		}
		fmt.Fprintf(&out, "# %s\n%s", c.name, describe(&graph.Graph{Steps: slices.DeleteFunc(driverSteps(g).Steps, func(s *graph.Step) bool { return s.ID != "driver/install" && s.ID != "driver/reboot" })}))
	}
	golden(t, "old-kernels", out.String())
}

// A node comes to another kernel only when its pods have left it.
func TestNodesWithOldKernels(t *testing.T) {
	none, newer := facts.Way{Name: machine.WayBuilt, Why: "it is not offered"}, facts.Way{Name: machine.WayNewer, Kernel: newKernel}
	for _, c := range []struct {
		name, more string
		ways       []facts.Way
		secure     bool
		there      bool // there is another branch of the driver
		want       string
		newer      bool // the step may take a newer kernel
	}{
		{"another branch", "gpu: {driver: {branch: 595}}\n", []facts.Way{none, newer}, false, true, "fetch drain/w1 remove install reboot load uncordon/w1", true},
		{"another branch, nobody knows", "gpu: {driver: {branch: 595}}\n", nil, false, true, "fetch drain/w1 remove install reboot load uncordon/w1", true},
		{"the first driver", "", []facts.Way{none, newer}, false, false, "install load", false},
		{"the first driver under Secure Boot", "", []facts.Way{none, newer}, true, false, "drain/w1 install reboot load uncordon/w1", true},
	} {
		inv, seen := decode(t, threeHosts+containerd+c.more), workersWithCards(t)
		delete(seen, "w2")
		f := seen["w1"]
		f.Kernel, f.Ways, f.SecureBoot = oldKernel, c.ways, c.secure
		if !c.there {
			for name := range f.Packages {
				if _, ok := machine.InstalledDriver(f, name); ok {
					delete(f.Packages, name)
				}
			}
			f.NVIDIA.Loaded, f.NVIDIA.Library, f.NVIDIA.GPUs = "", "", nil
		}
		g, err := Up(inv, seen)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastWords(driverSteps(g)); got != c.want {
			t.Errorf("%s: planned %q, want %q", c.name, got, c.want)
		}
		if s := stepOf(g, "w1", "driver/install"); s == nil || strings.Contains(s.Input.Values["ways"], "\nnewer ") != c.newer {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// What DKMS made stays what the host has, and is not installed again whenever somebody looks.
func TestDriverThatWasCompiled(t *testing.T) {
	inv := decode(t, threeHosts+"gpu: {driver: {branch: 580}}\n")
	f := bare(10)
	f.Kernel, f.NVIDIA.Cards = oldKernel, cards("20b0")
	if lines := machine.DriverWays(inv, f); len(lines) != 3 || !strings.HasPrefix(lines[1], "newer libnvidia-compute-580-server linux-modules-nvidia-580-server-open-generic ") {
		t.Errorf("a host without a driver is asked %q", lines)
	}
	for _, name := range []string{"linux-headers-" + oldKernel, "nvidia-dkms-580-server-open", "nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server", "libnvidia-compute-580-server"} {
		f.Packages[name] = facts.Package{Version: "580.173.02-0ubuntu0.24.04.1", Held: true}
	}
	c, err := machine.ChooseDriver(inv, f)
	if err != nil || !c.Compiled || len(c.Replaces) > 0 || len(machine.Machine{Facts: f}.Missing(c.Packages("ubuntu", f.Kernel).Driver)) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if lines := machine.DriverWays(inv, f); lines != nil {
		t.Errorf("a host with its driver is asked %q", lines)
	}
}

// lastWords are the names of the steps for a driver, without what all of them begin with.
func lastWords(g *graph.Graph) string {
	var steps []string
	for _, s := range g.Steps {
		if family, name, _ := strings.Cut(s.ID, "/"); family == "driver" || family == "node" {
			steps = append(steps, name)
		}
	}
	return strings.Join(steps, " ")
}
