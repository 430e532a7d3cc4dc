package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
)

// wayHeaders is no way to a driver, but whether apt has what DKMS builds its modules with.
const wayHeaders = "headers"

// foreignKernel reports whether the kernel that runs is not one of the distribution's, which nobody builds modules for: neither its
// name nor the package that it came with is, and apt has no modules for it.
func foreignKernel(f *facts.Host) bool {
	own := func(name string) bool {
		p, ok := f.Packages[name+f.Kernel]
		return ok && catalog.KernelPackageOf(f.OS.ID, f.Kernel, p.Version)
	}
	built := slices.ContainsFunc(f.Ways, func(w facts.Way) bool { return w.Name == wayBuilt && w.Kernel == f.Kernel })
	return !catalog.DistributionKernel(f.Kernel) && !own("linux-image-") && !own("linux-image-unsigned-") && !built
}

// hasHeaders reports whether modules for the running kernel can be built: in a folder that its own build has left, or by a package.
func hasHeaders(f *facts.Host) bool {
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
	i := slices.IndexFunc(f.Ways, func(w facts.Way) bool { return w.Name == wayHeaders })
	if i < 0 && !hasHeaders(f) {
		return nil // apt was not asked, or has no package lists yet: the step looks again
	}
	if f.SecureBoot {
		return &Refused{Kind: NoModules, Detail: kernel + ", and Secure Boot is on: nobody signs modules for it", Advice: "boot a kernel of the distribution: " + back}
	}
	if hasHeaders(f) || f.Ways[i].Kernel != "" {
		return nil
	}
	return &Refused{
		Kind: NoModules, Detail: fmt.Sprintf("%s: nobody builds modules for it, and its headers, with which DKMS would, are neither installed nor offered by apt (%s)", kernel, f.Ways[i].Why),
		Advice: fmt.Sprintf("install the headers from where the kernel came (package %s); or boot a kernel of the distribution: %s", catalog.HeadersPackage(f.Kernel), back),
	}
}

// driverPackages are those of a driver for a host: what its modules are built with is not asked for by name where the host has it.
func driverPackages(f *facts.Host, d catalog.Driver) catalog.DriverPackages {
	p := d.Packages(f.OS.ID, f.Kernel)
	if !foreignKernel(f) {
		return p
	}
	p.First = slices.DeleteFunc(slices.Clone(p.First), func(name string) bool { return strings.HasPrefix(name, "linux-headers-") })
	if !hasHeaders(f) {
		p.First = append(p.First, catalog.HeadersPackage(f.Kernel))
	}
	p.Next = nil // the distribution's headers would be for its own kernels
	return p
}
