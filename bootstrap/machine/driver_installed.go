package machine

import (
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// WithoutArchitecture returns the package's name without its suffix for a foreign architecture (":i386").
func WithoutArchitecture(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return name
}

// InstalledDriver returns the driver that an installed package belongs to; false if it belongs to none.
func InstalledDriver(f *facts.Host, name string) (catalog.InstalledPart, bool) {
	return catalog.LookupDriverPart(name, f.Packages[name].Version)
}

// otherDriver lists the installed packages that conflict with the wanted driver: another branch, another flavour of
// modules, or a source with other package names. If one package conflicts, all of its branch are listed.
func otherDriver(f *facts.Host, d catalog.Driver) []string {
	wanted := d.Packages(f.OS.ID, f.Kernel)
	others := map[int]bool{}
	for name := range f.Packages {
		p, ok := InstalledDriver(f, name)
		if ok && (p.Library && WithoutArchitecture(name) != wanted.Library || (p.Library || p.Flavour != "") && p.Branch != d.Branch || p.Flavour != "" && p.Flavour != d.Flavour) {
			others[p.Branch] = true
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.Packages)) {
		p, ok := InstalledDriver(f, name)
		if ok && (others[p.Branch] || p.Pinning && p.Branch != d.Branch) {
			out = append(out, name)
		}
	}
	return out
}

// satisfies reports whether the running driver is what the inventory asks for.
func satisfies(want inventory.Driver, f *facts.Host) bool {
	loaded := BranchOf(f.NVIDIA.Loaded)
	if want.Branch != 0 && want.Branch != loaded {
		return false
	}
	library := catalog.Driver{Source: want.Source, Branch: loaded}.Packages(f.OS.ID, f.Kernel).Library
	for name := range f.Packages {
		p, _ := InstalledDriver(f, name)
		if want.Source != "" && p.Library && WithoutArchitecture(name) != library || want.Flavour != "" && p.Flavour != "" && p.Flavour != want.Flavour {
			return false
		}
	}
	return true
}

// fitsButFails reports whether the driver fits such cards but it or they do not work, so that another driver would not help.
func fitsButFails(f *facts.Host, architectures []catalog.Architecture) bool {
	n := f.NVIDIA
	if n.Loaded == "" || n.Loaded != n.Library || len(n.GPUs) == 0 && !facts.TimedOut(n.SMI) {
		return false
	}
	branch, known := catalog.LookupDriverBranch(BranchOf(n.Loaded))
	return !known || len(branch.Flavours(architectures)) > 0
}
