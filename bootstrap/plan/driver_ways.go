package plan

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// The ways to the packages of a driver whose modules the distribution builds, best first. scripts/lib/driver-ways.sh finds which of
// them apt can really go.
const (
	wayBuilt = "built" // the modules are there for the kernel that runs
	wayNewer = "newer" // they are for the newest kernel of its line, which comes along, and a reboot starts it
	wayDKMS  = "dkms"  // they are compiled on the host
)

// DriverWays are the lines in which a host is asked how apt can install the driver that it is to get, before anything is changed on
// it. There are none where it gets no driver, or one that can be had in one way only.
func DriverWays(inv *inventory.Inventory, f *facts.Host) []string {
	if len(Cards(inv, f)) == 0 {
		return nil
	}
	hopeful := *f // of a kernel that may be nobody's, apt knows whether there are modules
	hopeful.Ways = []facts.Way{{Name: wayBuilt, Kernel: f.Kernel}}
	c, err := ChooseDriver(inv, &hopeful)
	if err != nil || c.Keep || len((&host{facts: f}).missing(c.Packages(f.OS.ID, f.Kernel).Driver)) == 0 {
		return nil
	}
	ways := []string{wayBuilt, wayNewer, wayDKMS}
	if foreignKernel(f) {
		ways = []string{wayBuilt} // nobody's line has a newer one, and the headers decide about DKMS
	}
	var lines []string
	if c.Prebuilt() {
		lines = wayLines(f, c, ways...)
	}
	for i := range lines {
		for _, name := range c.Replaces {
			lines[i] += " " + name + "-"
		}
	}
	if foreignKernel(f) && !hasHeaders(f) {
		headers := catalog.HeadersPackage(f.Kernel)
		lines = append(lines, strings.Join([]string{wayHeaders, headers, "-", headers}, " "))
	}
	return lines
}

// wayLines write ways as scripts/lib/driver-ways.sh reads them. Modules that DKMS makes are not signed.
func wayLines(f *facts.Host, c Choice, ways ...string) []string {
	compiled := c.Driver
	compiled.Compiled = true
	built, dkms := c.Packages(f.OS.ID, f.Kernel), compiled.Packages(f.OS.ID, f.Kernel)
	var out []string
	for _, way := range ways {
		words := append([]string{way, built.Library, "-"}, built.Driver...)
		switch {
		case way == wayNewer && len(built.Next) > 0:
			words[2] = built.Next[0]
		case way == wayDKMS && !f.SecureBoot:
			words = append(append(words[:3], dkms.First...), dkms.Driver...)
		case way != wayBuilt:
			continue
		}
		out = append(out, strings.Join(append(words, besides(f, c)...), " "))
	}
	return out
}

// besides are the packages that have to be had in the driver's version, and that another step installs.
func besides(f *facts.Host, c Choice) []string { return c.FabricPackages(FabricOf(f)).Driver }

// found is the first of the ways to the driver that is one, by the host's own answer; false: it was not asked, or there was none,
// for its package lists may be old, or not there yet.
func (h *host) found() (facts.Way, bool) {
	for _, way := range h.facts.Ways {
		if way.Kernel != "" && way.Name != wayHeaders {
			return way, true
		}
	}
	return facts.Way{}, false
}

// because says which way the driver comes, where it is not the first one, as the end of a sentence.
func (h *host) because(c Choice) string {
	found, _ := h.found()
	why := ""
	if c.Prebuilt() && found.Name != wayBuilt && len(h.facts.Ways) > 0 {
		why = fmt.Sprintf("none come built for kernel %s: %s", h.facts.Kernel, h.facts.Ways[0].Why)
	}
	switch {
	case why != "" && found.Name == wayNewer:
		return fmt.Sprintf("; with kernel %s, for which there are modules (%s)", found.Kernel, why)
	case why != "" && found.Name == wayDKMS:
		return fmt.Sprintf("; DKMS builds the modules (%s)", why)
	}
	return ""
}

// goWays gives the step that installs a driver the ways that it may go, and returns what plans the reboot after it. The step looks
// again, for by then the package lists are fresh. Only a host that has no pods may come to another kernel: it is no node yet, or is
// drained. A node is drained for nothing else than that where Secure Boot keeps modules from it that DKMS makes.
func (b *builder) goWays(h *host, c Choice, values map[string]string, reboot func()) func() {
	found, known := h.found()
	if !c.Prebuilt() {
		return reboot
	}
	if found.Name == wayNewer && h.facts.SecureBoot {
		b.drainNode(h, "kernel "+found.Kernel+" is to run"+h.because(c), false)
	}
	mayReboot := (!known || found.Name == wayNewer) && (!h.member() || h.drain != (graph.Ref{}))
	values["ways"] = lines(wayLines(h.facts, c, installWays(mayReboot)...)...)
	if more := besides(h.facts, c); len(more) > 0 {
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
		b.reboot(h, "reboot, but only if a newer kernel came with the driver", "kernel "+h.facts.Kernel+" may have no modules", "a newer kernel is to run", "yes")
	}
}

// installWays are the ways that an installation may go.
func installWays(mayReboot bool) []string {
	if mayReboot {
		return []string{wayBuilt, wayNewer, wayDKMS}
	}
	return []string{wayBuilt, wayDKMS}
}

// compiled reports whether DKMS makes a driver's modules on the host, although they come built for other kernels.
func compiled(f *facts.Host, d catalog.Driver) bool {
	if !d.Prebuilt() {
		return false
	}
	h := host{facts: f}
	built := h.missing(d.Packages(f.OS.ID, f.Kernel).Driver)
	d.Compiled = true
	return len(built) > 0 && len(h.missing(d.Packages(f.OS.ID, f.Kernel).Driver)) == 0
}

// Interrupted reports whether kgpu began to install a driver, which does not do its work yet: a newer kernel that is installed, or
// an update that waits for a reboot, may have come with it, and the reboot is kgpu's to plan.
func Interrupted(inv *inventory.Inventory, f *facts.Host) bool {
	_, begun := f.Files[driverUpgrades]
	return begun && len(Cards(inv, f)) > 0 && !works(inv, f)
}
