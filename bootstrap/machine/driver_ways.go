package machine

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// The ways to the packages of a driver whose modules the distribution builds, best first. scripts/lib/driver-ways.sh finds which of
// them apt can really go.
const (
	WayBuilt = "built" // the modules are there for the kernel that runs
	WayNewer = "newer" // they are for the newest kernel of its line, which comes along, and a reboot starts it
	WayDKMS  = "dkms"  // they are compiled on the host
)

// DriverWays are the lines in which a host is asked how apt can install the driver that it is to get, before anything is changed on
// it. There are none where it gets no driver, or one that can be had in one way only.
func DriverWays(inv *inventory.Inventory, f *facts.Host) []string {
	if len(Cards(inv, f)) == 0 {
		return nil
	}
	hopeful := *f // of a kernel that may be nobody's, apt knows whether there are modules
	hopeful.Ways = []facts.Way{{Name: WayBuilt, Kernel: f.Kernel}}
	c, err := ChooseDriver(inv, &hopeful)
	if err != nil || c.Keep || len(Machine{Facts: f}.Missing(c.Packages(f.OS.ID, f.Kernel).Driver)) == 0 {
		return nil
	}
	ways := []string{WayBuilt, WayNewer, WayDKMS}
	if foreignKernel(f) {
		ways = []string{WayBuilt} // nobody's line has a newer one, and the headers decide about DKMS
	}
	var lines []string
	if c.Prebuilt() {
		lines = WayLines(f, c, ways...)
	}
	for i := range lines {
		for _, name := range c.Replaces {
			lines[i] += " " + name + "-"
		}
	}
	if foreignKernel(f) && !HasHeaders(f) {
		headers := catalog.HeadersPackage(f.Kernel)
		lines = append(lines, strings.Join([]string{WayHeaders, headers, "-", headers}, " "))
	}
	return lines
}

// WayLines write ways as scripts/lib/driver-ways.sh reads them. Modules that DKMS makes are not signed.
func WayLines(f *facts.Host, c Choice, ways ...string) []string {
	compiled := c.Driver
	compiled.Compiled = true
	built, dkms := c.Packages(f.OS.ID, f.Kernel), compiled.Packages(f.OS.ID, f.Kernel)
	var out []string
	for _, way := range ways {
		words := append([]string{way, built.Library, "-"}, built.Driver...)
		switch {
		case way == WayNewer && len(built.Next) > 0:
			words[2] = built.Next[0]
		case way == WayDKMS && !f.SecureBoot:
			words = append(append(words[:3], dkms.First...), dkms.Driver...)
		case way != WayBuilt:
			continue
		}
		out = append(out, strings.Join(append(words, Besides(f, c)...), " "))
	}
	return out
}

// Besides are the packages that have to be had in the driver's version, and that another step installs.
func Besides(f *facts.Host, c Choice) []string { return c.FabricPackages(FabricOf(f)).Driver }

// DriverWay is the first of the ways to the driver that is one, by the host's own answer; false: it was not asked, or there was none,
// for its package lists may be old, or not there yet.
func (m Machine) DriverWay() (facts.Way, bool) {
	for _, way := range m.Facts.Ways {
		if way.Kernel != "" && way.Name != WayHeaders {
			return way, true
		}
	}
	return facts.Way{}, false
}

// compiled reports whether DKMS makes a driver's modules on the host, although they come built for other kernels.
func compiled(f *facts.Host, d catalog.Driver) bool {
	if !d.Prebuilt() {
		return false
	}
	m := Machine{Facts: f}
	built := m.Missing(d.Packages(f.OS.ID, f.Kernel).Driver)
	d.Compiled = true
	return len(built) > 0 && len(m.Missing(d.Packages(f.OS.ID, f.Kernel).Driver)) == 0
}

// Interrupted reports whether kgpu began to install a driver, which does not do its work yet: a newer kernel that is installed, or
// an update that waits for a reboot, may have come with it, and the reboot is kgpu's to plan.
func Interrupted(inv *inventory.Inventory, f *facts.Host) bool {
	_, begun := f.Files[DriverUpgrades]
	return begun && len(Cards(inv, f)) > 0 && !DriverWorks(inv, f)
}

// WayHeaders is no way to a driver, but whether apt has what DKMS builds its modules with.
const WayHeaders = "headers"

// foreignKernel reports whether the kernel that runs is not one of the distribution's, which nobody builds modules for: neither its
// name nor the package that it came with is, and apt has no modules for it.
func foreignKernel(f *facts.Host) bool {
	own := func(name string) bool {
		p, ok := f.Packages[name+f.Kernel]
		return ok && catalog.KernelPackageOf(f.OS.ID, f.Kernel, p.Version)
	}
	built := slices.ContainsFunc(f.Ways, func(w facts.Way) bool { return w.Name == WayBuilt && w.Kernel == f.Kernel })
	return !catalog.DistributionKernel(f.Kernel) && !own("linux-image-") && !own("linux-image-unsigned-") && !built
}

// HasHeaders reports whether modules for the running kernel can be built: in a folder that its own build has left, or by a package.
func HasHeaders(f *facts.Host) bool {
	if f.KernelHeaders {
		return true
	}
	for _, kind := range []string{"linux-headers-", "proxmox-headers-", "pve-headers-"} {
		if _, ok := f.Packages[kind+f.Kernel]; ok {
			return true
		}
	}
	return false
}

// onForeignKernel refuses a driver for a kernel that is not the distribution's where its modules cannot be built. Where there are
// modules of a driver for that kernel, somebody builds them.
func onForeignKernel(f *facts.Host) *Refused {
	if !foreignKernel(f) || f.NVIDIA.Module != "" || f.NVIDIA.Loaded != "" {
		return nil
	}
	kernel := fmt.Sprintf("kernel %s is not one of %s's", f.Kernel, f.OS.ID)
	back := "`apt-get install linux-generic`"
	if f.OS.ID == "debian" {
		back = "`apt-get install linux-image-" + f.Arch + "`"
	}
	back += ", then remove the kernel that runs from the boot loader's first place and `reboot`"
	i := slices.IndexFunc(f.Ways, func(w facts.Way) bool { return w.Name == WayHeaders })
	if i < 0 && !HasHeaders(f) {
		return nil // apt was not asked, or has no package lists yet: the step looks again
	}
	if f.SecureBoot {
		return &Refused{Kind: NoModules, Detail: kernel + ", and Secure Boot is on: nobody signs modules for it", Advice: "boot a kernel of the distribution: " + back}
	}
	if HasHeaders(f) || f.Ways[i].Kernel != "" {
		return nil
	}
	return &Refused{
		Kind: NoModules, Detail: fmt.Sprintf("%s: nobody builds modules for it, and its headers, with which DKMS would, are neither installed nor offered by apt (%s)", kernel, f.Ways[i].Why),
		Advice: fmt.Sprintf("install the headers from where the kernel came (package %s); or boot a kernel of the distribution: %s", catalog.HeadersPackage(f.Kernel), back),
	}
}

// DriverPackages are those of a driver for a host: what its modules are built with is not asked for by name where the host has it.
func DriverPackages(f *facts.Host, d catalog.Driver) catalog.DriverPackages {
	p := d.Packages(f.OS.ID, f.Kernel)
	if !foreignKernel(f) {
		return p
	}
	p.First = slices.DeleteFunc(slices.Clone(p.First), func(name string) bool { return strings.HasPrefix(name, "linux-headers-") })
	if !HasHeaders(f) {
		p.First = append(p.First, catalog.HeadersPackage(f.Kernel))
	}
	p.Next = nil // the distribution's headers would be for its own kernels
	return p
}
