package plan

import (
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

// onOldKernel is a host with a card and an old kernel, and these ways to a driver.
func onOldKernel(name string, ways []facts.Way, more ...func(*facts.Host)) scenario {
	return scenario{name: name, inventory: threeHosts + containerd, facts: func(f map[string]*facts.Host) {
		w1 := f["w1"]
		w1.Kernel, w1.Ways, w1.NVIDIA.Cards, w1.BootID = oldKernel, ways, cards("20b0"), "5f0c"
		for _, m := range more {
			m(w1)
		}
	}}
}

var (
	noModules  = facts.Way{Name: machine.WayBuilt, Why: "Unable to locate package linux-modules-nvidia-580-server-open-" + oldKernel}
	newer      = facts.Way{Name: machine.WayNewer, Kernel: newKernel}
	noNewer    = facts.Way{Name: machine.WayNewer, Why: "it is not offered"}
	oldKernels = []scenario{
		onOldKernel("modules come built", []facts.Way{{Name: machine.WayBuilt, Kernel: oldKernel}}),
		onOldKernel("a newer kernel", []facts.Way{noModules, newer}),
		onOldKernel("a newer kernel, with NVSwitches", []facts.Way{noModules, newer}, func(f *facts.Host) { f.NVIDIA.Switches = 4 }),
		onOldKernel("a newer kernel under Secure Boot", []facts.Way{noModules, newer}, func(f *facts.Host) { f.SecureBoot = true }),
		onOldKernel("DKMS", []facts.Way{noModules, noNewer, {Name: machine.WayDKMS, Kernel: oldKernel}}),
		onOldKernel("no package lists yet", []facts.Way{noModules, noNewer, {Name: machine.WayDKMS, Why: "it is not offered"}}),
	}
)

// TestOldKernels writes down what becomes of hosts with an old kernel that are no nodes yet, by what they say that apt can
// install.
func TestOldKernels(t *testing.T) { writeTogether(t, "old-kernels", oldKernels, "driver/*") }

// A node comes to another kernel only when its pods have left it.
func TestNodesWithOldKernels(t *testing.T) {
	for _, c := range []struct {
		name, more string
		ways       []facts.Way
		secure     bool
		there      bool // there is another branch of the driver
		want       string
		newer      bool // the step may take a newer kernel
	}{
		{"another branch", "gpu: {driver: {branch: 595}}\n", []facts.Way{noModules, newer}, false, true, "fetch drain/w1 remove install reboot load uncordon/w1", true},
		{"another branch, nobody knows", "gpu: {driver: {branch: 595}}\n", nil, false, true, "fetch drain/w1 remove install reboot load uncordon/w1", true},
		{"the first driver", "", []facts.Way{noModules, newer}, false, false, "install load", false},
		{"the first driver under Secure Boot", "", []facts.Way{noModules, newer}, true, false, "drain/w1 install reboot load uncordon/w1", true},
	} {
		inv, seen := decode(t, threeHosts+containerd+c.more), workersWithCards(t)
		delete(seen, "w2")
		f := seen["w1"]
		f.Kernel, f.Ways, f.SecureBoot = oldKernel, c.ways, c.secure
		if !c.there {
			loseDriver(f)
			f.NVIDIA.Loaded, f.NVIDIA.Library, f.NVIDIA.GPUs = "", "", nil
		}
		g := planUp(t, inv, seen)
		if got := lastWords(g); got != c.want {
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
