package plan

import (
	"fmt"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

const nouveauBlacklist = "/etc/modprobe.d/kgpu-nouveau.conf"

var (
	nouveauFile = text("# The cards are for NVIDIA's driver, written by kgpu.\nblacklist nouveau\noptions nouveau modeset=0\n")
	// An upgrade beneath running containers breaks them: library and module would differ until a reboot. A kernel that
	// comes by itself may have no module.
	upgradesFile = text("// Drivers are not replaced beneath running containers, written by kgpu.\n" +
		`Unattended-Upgrade::Package-Blacklist { "^nvidia-"; "^libnvidia-"; "^cuda-drivers"; "^linux-(image|headers|modules)-"; };` + "\n")
	modulesFile = text("# Containers need it before anybody asks for it, written by kgpu.\nnvidia\nnvidia_uvm\n")
)

func (b *builder) driver(h *host, c machine.DriverChoice) {
	if c.Keep {
		b.skip(h, "driver/install", fmt.Sprintf("driver %s stays: %s", h.Facts.NVIDIA.Loaded, c.Why))
		if c.Later {
			h.stays = append(h.stays, "at driver "+h.Facts.NVIDIA.Loaded)
			return
		}
		b.closeRepositories(h, c)
		if _, ours := h.Facts.Files[machine.DriverUpgrades]; !ours {
			b.loadDriver(h, nil)
			if len(h.Facts.NVIDIA.FabricNotReady()) > 0 {
				b.keptFabric(h)
			}
			return
		}
		// The run that installed it may have got no further.
		b.loadDriver(h, map[string]graph.File{machine.DriverModules: modulesFile})
		b.keptFabric(h)
		return
	}
	found := h.Facts
	if len(c.Replaces) > 0 {
		h.Facts, h.replaced = withoutDriver(found, c.Replaces), true
		b.driverRepository(h, c)
		b.fetchDriver(h, found, c)
	}
	reboot := b.replace(h, found, c)
	b.nouveau(h)
	if !h.replaced {
		b.driverRepository(h, c)
	}
	p := machine.DriverPackages(h.Facts, c.Driver)
	files := map[string]graph.File{machine.DriverUpgrades: upgradesFile}
	if machine.FabricOf(h.Facts) == catalog.NVLinkRack {
		files[coherentMemory] = coherentFile // before a driver is loaded, as its packages may do
	}
	reasons := append(changed(h.Facts, files), h.Unheld(p.Driver)...)
	_, line := catalog.SplitKernel(h.Facts.Kernel)
	missing := h.Missing(append(p.First, p.Driver...))
	values := map[string]string{"headers": lines(p.First...), "packages": lines(p.Driver...), "next": lines(p.Next...), "line": line, "version_package": p.Library}
	if len(missing) > 0 {
		reasons = []string{fmt.Sprintf("driver %s for %s%s", c.Driver, c.Why, h.because(c))}
		reboot = b.goWays(h, c, values, reboot)
	}
	b.unless(h, reasons, fmt.Sprintf("driver %s is installed", c.Driver), graph.Step{
		Ref: graph.Ref{ID: "driver/install"}, Title: fmt.Sprintf("install the driver %d", c.Branch),
		Input: graph.Input{Values: values, Files: files},
	})
	if reboot != nil {
		reboot()
	}
	b.loadDriver(h, map[string]graph.File{machine.DriverModules: modulesFile})
	b.fabric(h, c)
}

func (b *builder) nouveau(h *host) {
	files := map[string]graph.File{nouveauBlacklist: nouveauFile}
	reasons := changed(h.Facts, files)
	if n := h.Facts.NVIDIA.Nouveau; n.Loaded && n.Users == 0 {
		reasons = append(reasons, "nouveau is loaded")
	} else if n.Loaded {
		reasons = append(reasons, "nouveau is in use")
	}
	b.unless(h, reasons, "nouveau is off", graph.Step{
		Ref:   graph.Ref{ID: "driver/nouveau"},
		Input: graph.Input{Files: files},
	})
}

// loadDriver plans the step that ends with all cards in nvidia-smi's list.
func (b *builder) loadDriver(h *host, files map[string]graph.File) {
	reasons := changed(h.Facts, files)
	if !machine.DriverWorks(b.Inventory, h.Facts) {
		reasons = append(reasons, machine.DriverTrouble(b.Inventory, h.Facts))
	}
	if u, ok := h.Facts.Units[persistence]; ok && u.Active != "active" {
		reasons = append(reasons, persistence+" is not running")
	}
	b.unless(h, reasons, fmt.Sprintf("the driver sees %d of %s", len(h.Facts.NVIDIA.GPUs), plural.Of(h.cards, "card")), graph.Step{
		Ref:   graph.Ref{ID: "driver/load"},
		Input: graph.Input{Values: b.loadValues(h), Files: files},
	})
}

// endedDrivers warns of drivers that get no more fixes: where kgpu puts them, or the inventory asks for their branch.
func (b *builder) endedDrivers() {
	for _, h := range b.hosts {
		branch, known := catalog.LookupDriverBranch(h.choice.Branch)
		asked := b.Inventory.GPU.Driver.Branch != 0
		if h.cards == 0 || !known || !branch.Ended() || h.choice.Source == catalog.NoDriver || h.choice.Keep && !asked {
			continue
		}
		advice := "kgpu knows of no newer one for these cards and this release"
		if asked {
			advice = "without `gpu.driver.branch` kgpu chooses one that gets them, where there is one"
		}
		b.warn("%s: driver %d is of a %s: %s", h.id, branch.Number, branch.Support(), advice)
	}
}

const persistence = "nvidia-persistenced.service"
