package plan

import (
	"fmt"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// because says which way the driver comes, where it is not the first one, as the end of a sentence.
func (h *host) because(c machine.DriverChoice) string {
	found, _ := h.DriverWay()
	why := ""
	if c.Prebuilt() && found.Name != machine.WayBuilt && len(h.Facts.Ways) > 0 {
		why = fmt.Sprintf("none come built for kernel %s: %s", h.Facts.Kernel, h.Facts.Ways[0].Why)
	}
	switch {
	case why != "" && found.Name == machine.WayNewer:
		return fmt.Sprintf("; with kernel %s, for which there are modules (%s)", found.Kernel, why)
	case why != "" && found.Name == machine.WayDKMS:
		return fmt.Sprintf("; DKMS builds the modules (%s)", why)
	}
	return ""
}

// goWays gives the step that installs a driver the ways that it may go, and returns what plans the reboot after it. The step looks
// again, for by then the package lists are fresh. Only a host that has no pods may come to another kernel: it is no node yet, or is
// drained. A node is drained for nothing else than that where Secure Boot keeps modules from it that DKMS makes.
func (b *builder) goWays(h *host, c machine.DriverChoice, values map[string]string, reboot func()) func() {
	found, known := h.DriverWay()
	if !c.Prebuilt() {
		return reboot
	}
	if found.Name == machine.WayNewer && h.Facts.SecureBoot {
		b.drainNode(h, "kernel "+found.Kernel+" is to run"+h.because(c), false)
	}
	mayReboot := (!known || found.Name == machine.WayNewer) && (!h.InCluster() || h.drain != (graph.Ref{}))
	values["ways"] = lines(machine.WayLines(h.Facts, c, installWays(mayReboot)...)...)
	if more := machine.SameVersionPackages(h.Facts, c); len(more) > 0 {
		values["besides"] = lines(more...)
	}
	switch {
	case !mayReboot || reboot != nil:
		return reboot // which looks for what is loaded, and for what kernel the driver is
	case known:
		return func() {
			b.reboot(h, "reboot into kernel "+found.Kernel, "the modules of driver "+fmt.Sprint(c.Branch)+" are for it", "kernel "+found.Kernel+" is to run", "yes")
		}
	}
	return func() {
		b.reboot(h, "reboot, but only if a newer kernel came with the driver", "kernel "+h.Facts.Kernel+" may have no modules", "a newer kernel is to run", "yes")
	}
}

// installWays are the ways that an installation may go.
func installWays(mayReboot bool) []string {
	if mayReboot {
		return []string{machine.WayBuilt, machine.WayNewer, machine.WayDKMS}
	}
	return []string{machine.WayBuilt, machine.WayDKMS}
}
