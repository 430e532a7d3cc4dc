package plan

import (
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// debianComponents are those in which Debian has drivers and what belongs to them, by its policy.
var debianComponents = []string{"contrib", "non-free", "non-free-firmware"}

const debianSources = "/etc/apt/sources.list.d/kgpu-debian.sources"

// driverRepository plans the repository that a driver comes from; Ubuntu's archive is there.
func (b *builder) driverRepository(h *host, c machine.DriverChoice) {
	switch c.Source {
	case catalog.FromCUDA:
		b.cudaRepository(h, c)
	case catalog.FromPPA:
		b.graphicsDrivers(h)
	case catalog.FromDebian:
		b.debianRepository(h, c)
	}
}

func (b *builder) graphicsDrivers(h *host) {
	b.repository(h, repository{
		name: "graphics-drivers", title: "the graphics-drivers PPA", suite: h.Facts.OS.Codename + " main",
		source: effective(catalog.GraphicsDriversSource, b.Inventory.Repositories.GraphicsDrivers, "/Release.key"),
	})
}

// closeRepositories plans that of the repositories which a driver or CUDA came from apt takes no other packages, where an earlier
// kgpu has added them.
func (b *builder) closeRepositories(h *host, c machine.DriverChoice) {
	if h.opened("cuda") {
		b.cudaRepository(h, c)
	}
	if h.opened("graphics-drivers") {
		b.graphicsDrivers(h)
	}
}

// debianRepository plans the components of the host's own archive. Where the driver is there they have done their work.
func (b *builder) debianRepository(h *host, c machine.DriverChoice) {
	missing := h.Missing(c.Packages(h.Facts.OS.ID, h.Facts.Kernel).Driver)
	_, there := h.Facts.Files[debianSources]
	if there || len(missing) == 0 {
		b.skip(h, "repo/debian", "Debian's drivers can be had")
		return
	}
	b.add(h, graph.Step{
		Ref: graph.Ref{ID: "repo/debian"}, Title: "add Debian's " + strings.Join(debianComponents, ", "), Reason: "the driver comes from there",
		Input: graph.Input{Values: map[string]string{"components": lines(debianComponents...), "list": debianSources}},
	})
}
