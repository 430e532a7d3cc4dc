package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
)

// Files of the steps for the fabric of cards.
const (
	fabricModules  = "/etc/modules-load.d/kgpu-nvlink.conf"
	coherentMemory = "/etc/modprobe.d/kgpu-nvidia-memory.conf"
)

// Otherwise the kernel has the memory of the cards as its own and gives it to whatever program asks.
// Source: NVIDIA, "Understanding Memory Management on Hardware-Coherent Platforms".
var coherentFile = text("# The memory of the cards is for programs that use the cards, written by kgpu.\noptions nvidia NVreg_CoherentGPUMemoryMode=driver\n")

// FabricOf tells what connects the cards of a host, as far as the host runs something for it.
func FabricOf(f *facts.Host) catalog.Fabric {
	var ids []string
	for _, c := range unbound(f) {
		ids = append(ids, c.ID)
	}
	return catalog.FabricOf(ids, f.NVIDIA.Switches, f.NVIDIA.Bridges)
}

// lacksFabric says what a driver's source does not have.
func lacksFabric(f *facts.Host, d catalog.Driver, names string) *Refused {
	fabric := FabricOf(f)
	p := d.FabricPackages(fabric)
	return &Refused{Kind: NoFabric, Detail: fmt.Sprintf("%s: the host has %s, which need %s; source %s does not have that for %s %s",
		names, fabric, strings.Join(slices.Concat(p.Driver, p.Others), ", "), d.Source, f.OS.ID, f.OS.VersionID)}
}

// keptFabric plans what the fabric of a driver that stays needs, where its packages tell which one it is.
func (b *builder) keptFabric(h *host) {
	for _, source := range catalog.DriverSources(h.facts.OS.ID + " " + h.facts.OS.VersionID) {
		d := catalog.Driver{Source: source, Branch: branchOf(h.facts.NVIDIA.Loaded)}
		library := d.Packages(h.facts.OS.ID, h.facts.Kernel).Library
		if catalog.HasFabricManager(source) && len(h.missing([]string{library})) == 0 {
			b.fabric(h, Choice{Driver: d})
			return
		}
	}
}

// fabric plans the step that ends with all cards in their fabric, where they have one.
func (b *builder) fabric(h *host, c Choice) {
	kind := FabricOf(h.facts)
	if kind == catalog.NoFabric {
		return
	}
	p := c.FabricPackages(kind)
	files := map[string]graph.File{}
	if len(p.Modules) > 0 {
		files[fabricModules] = text("# The switches of the cards are reached over these, written by kgpu.\n" + lines(p.Modules...) + "\n")
	}
	missing := h.missing(slices.Concat(p.Driver, p.Others))
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
	reasons := changed(h.facts, files)
	switch u := h.facts.Units[p.Unit]; {
	case !p.Ends:
		reasons = append(reasons, h.notRunning(p.Unit)...)
	case u.Enabled != "enabled":
		reasons = append(reasons, p.Unit+" is not enabled")
	}
	return append(reasons, h.facts.NVIDIA.FabricWaits()...)
}
