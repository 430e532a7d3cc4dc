package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// Files of the steps for the fabric of cards.
const (
	fabricModules  = "/etc/modules-load.d/kgpu-nvlink.conf"
	coherentMemory = "/etc/modprobe.d/kgpu-nvidia-memory.conf"
)

// Otherwise the kernel has the memory of the cards as its own and gives it to whatever program asks.
// Source: NVIDIA, "Understanding Memory Management on Hardware-Coherent Platforms".
var coherentFile = text("# The memory of the cards is for programs that use the cards, written by kgpu.\noptions nvidia NVreg_CoherentGPUMemoryMode=driver\n")

// keptFabric plans what the fabric of a driver that stays needs, where its packages tell which one it is.
func (b *builder) keptFabric(h *host) {
	for _, source := range catalog.DriverSources(h.Facts.OS.ID + " " + h.Facts.OS.VersionID) {
		d := catalog.Driver{Source: source, Branch: machine.BranchOf(h.Facts.NVIDIA.Loaded)}
		library := d.Packages(h.Facts.OS.ID, h.Facts.Kernel).Library
		if catalog.HasFabricManager(source) && len(h.Missing([]string{library})) == 0 {
			b.fabric(h, machine.DriverChoice{Driver: d})
			return
		}
	}
}

// fabric plans the step that ends with all cards in their fabric, where they have one.
func (b *builder) fabric(h *host, c machine.DriverChoice) {
	kind := machine.FabricOf(h.Facts)
	if kind == catalog.NoFabric {
		return
	}
	p := c.FabricPackages(kind)
	files := map[string]graph.File{}
	if len(p.Modules) > 0 {
		files[fabricModules] = text("# The switches of the cards are reached over these, written by kgpu.\n" + lines(p.Modules...) + "\n")
	}
	missing := h.Missing(slices.Concat(p.Driver, p.Others))
	if slices.Contains(missing, "nvlsm") && c.Source != catalog.FromCUDA {
		b.cudaRepository(h, c) // nobody else has it
	}
	values := map[string]string{"packages": lines(p.Driver...), "others": lines(p.Others...), "modules": lines(p.Modules...), "unit": p.Unit}
	if p.Ends {
		values["ends"] = "yes"
	}
	b.unless(h, h.fabricReasons(kind, p, missing, files), "the fabric of the cards is set up", graph.Step{
		Ref:   graph.Ref{ID: "driver/fabric"},
		Input: graph.Input{Values: values, Files: files},
	})
}

// fabricReasons says why the step is to be done.
func (h *host) fabricReasons(kind catalog.Fabric, p catalog.FabricPackages, missing []string, files map[string]graph.File) []string {
	if len(missing) > 0 {
		return []string{fmt.Sprintf("the cards are connected by %s, and there is no %s", kind, strings.Join(missing, ", "))}
	}
	reasons := changed(h.Facts, files)
	switch u := h.Facts.Units[p.Unit]; {
	case !p.Ends:
		reasons = append(reasons, h.NotRunning(p.Unit)...)
	case u.Enabled != "enabled":
		reasons = append(reasons, p.Unit+" is not enabled")
	}
	return append(reasons, h.Facts.NVIDIA.FabricNotReady()...)
}
