package machine

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// The ways to get the kernel modules of a driver that the distribution builds, best first. scripts/lib/driver-ways.sh
// finds out which of them apt can install.
const (
	WayBuilt = "built" // prebuilt for the running kernel
	WayNewer = "newer" // prebuilt for the newest kernel of the same line, which is installed too and needs a reboot
	WayDKMS  = "dkms"  // compiled on the host by DKMS
)

// DriverWays returns the lines that ask a host which ways apt can install its future driver. There are none if it
// gets no driver, or if there is only one way.
func DriverWays(inv *inventory.Inventory, f *facts.Host) []string {
	if len(Cards(inv, f)) == 0 {
		return nil
	}
	hopeful := *f // assume that apt has modules for a kernel that is not the distribution's
	hopeful.Ways = []facts.Way{{Name: WayBuilt, Kernel: f.Kernel}}
	c, err := ChooseDriver(inv, &hopeful)
	if err != nil || c.Keep || len(Machine{Facts: f}.Missing(c.Packages(f.OS.ID, f.Kernel).Driver)) == 0 {
		return nil
	}
	ways := []string{WayBuilt, WayNewer, WayDKMS}
	if foreignKernel(f) {
		ways = []string{WayBuilt} // a foreign kernel has no newer one of its line, and DKMS is decided by its headers
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

// WayLines formats ways for scripts/lib/driver-ways.sh. Modules that DKMS compiles are not signed.
func WayLines(f *facts.Host, c DriverChoice, ways ...string) []string {
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
		out = append(out, strings.Join(append(words, SameVersionPackages(f, c)...), " "))
	}
	return out
}

// SameVersionPackages lists the packages that another step installs and that must have exactly the driver's version.
func SameVersionPackages(f *facts.Host, c DriverChoice) []string {
	return c.FabricPackages(FabricOf(f)).Driver
}

// DriverWay returns the best way that the host found apt can install. It is false if the host was not asked or found
// none, as when its package lists are old or missing.
func (m Machine) DriverWay() (facts.Way, bool) {
	for _, way := range m.Facts.Ways {
		if way.Kernel != "" && way.Name != WayHeaders {
			return way, true
		}
	}
	return facts.Way{}, false
}

// needsDKMS reports whether DKMS has to compile the modules on this host, although the source has them prebuilt for
// other kernels.
func needsDKMS(f *facts.Host, d catalog.Driver) bool {
	if !d.Prebuilt() {
		return false
	}
	m := Machine{Facts: f}
	built := m.Missing(d.Packages(f.OS.ID, f.Kernel).Driver)
	d.Compiled = true
	return len(built) > 0 && len(m.Missing(d.Packages(f.OS.ID, f.Kernel).Driver)) == 0
}

// DriverInterrupted reports whether kgpu began to install a driver that does not work yet. A newer kernel or a pending
// reboot may then be kgpu's own doing, and the plan reboots the host.
func DriverInterrupted(inv *inventory.Inventory, f *facts.Host) bool {
	_, begun := f.Files[DriverUpgrades]
	return begun && len(Cards(inv, f)) > 0 && !DriverWorks(inv, f)
}

// WayHeaders asks whether apt has the headers of the running kernel. It is not a way to get a driver.
const WayHeaders = "headers"

// foreignKernel reports whether the running kernel is not the distribution's, by its name and its package, and apt
// has no modules for it.
func foreignKernel(f *facts.Host) bool {
	own := func(name string) bool {
		p, ok := f.Packages[name+f.Kernel]
		return ok && catalog.KernelPackageOf(f.OS.ID, f.Kernel, p.Version)
	}
	built := slices.ContainsFunc(f.Ways, func(w facts.Way) bool { return w.Name == WayBuilt && w.Kernel == f.Kernel })
	return !catalog.DistributionKernel(f.Kernel) && !own("linux-image-") && !own("linux-image-unsigned-") && !built
}

// HasHeaders reports whether the headers of the running kernel are on the host, from a package or from the kernel's
// own build.
func HasHeaders(f *facts.Host) bool {
	packages := [][]string{{"linux-headers-" + f.Kernel}, {"proxmox-headers-" + f.Kernel}, {"pve-headers-" + f.Kernel}}
	return f.KernelHeaders || Machine{Facts: f}.HasFirstOf(packages)
}

// onForeignKernel refuses a driver if the running kernel is not the distribution's and its modules can neither be
// found nor built. A driver that already has modules for it is accepted.
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
		return nil // apt was not asked or has no package lists yet; the step checks again
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

// DriverPackages returns the driver's packages to install on a host, without the kernel headers if it has them.
func DriverPackages(f *facts.Host, d catalog.Driver) catalog.DriverPackages {
	p := d.Packages(f.OS.ID, f.Kernel)
	if !foreignKernel(f) {
		return p
	}
	p.First = slices.DeleteFunc(slices.Clone(p.First), func(name string) bool { return strings.HasPrefix(name, "linux-headers-") })
	if !HasHeaders(f) {
		p.First = append(p.First, catalog.HeadersPackage(f.Kernel))
	}
	p.Next = nil // the distribution's headers are for its own kernels
	return p
}
