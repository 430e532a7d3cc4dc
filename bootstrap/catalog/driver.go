package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Flavour is the kind of kernel modules of a driver.
type Flavour string

// The flavours.
const (
	Open        Flavour = "open"
	Proprietary Flavour = "proprietary"
)

// DriverSource is where a driver comes from.
type DriverSource string

// The sources of drivers.
const (
	FromUbuntu DriverSource = "ubuntu" // the Ubuntu archive: -server packages, modules built and signed by Canonical
	FromCUDA   DriverSource = "cuda"   // NVIDIA's CUDA repository: modules built on the host by DKMS
	FromDebian DriverSource = "debian" // Debian's non-free: modules built on the host by DKMS
	FromPPA    DriverSource = "ppa"    // the graphics-drivers PPA, only on request: modules built on the host by DKMS
	NoDriver   DriverSource = "none"   // the driver is there already and not kgpu's
)

// DriverBranch is a release branch of the driver.
type DriverBranch struct {
	Number int
	Runs   map[Architecture][]Flavour // what it runs, best flavour first
}

var (
	proprietary = []Flavour{Proprietary}
	open        = []Flavour{Open}
	both        = []Flavour{Open, Proprietary}
	closedFirst = []Flavour{Proprietary, Open}
)

// driverBranches, best first: the long-term branch before shorter-lived ones.
// Sources: NVIDIA's data center driver life cycle (endoflife.date, nvidia-driver) for the order: 580 is supported until 2028-08,
// 595 until 2027-03, 610 is a new feature branch; the driver installation guide, "Kernel modules": Blackwell and Grace Hopper need the open modules, Turing and newer may have them, Maxwell to Volta
// cannot; the 590 branch dropped Maxwell, Pascal and Volta; 470 is the last one for Kepler. Before 560 the proprietary modules
// were NVIDIA's default everywhere.
var driverBranches = []DriverBranch{
	{580, map[Architecture][]Flavour{
		Maxwell: proprietary, Pascal: proprietary, Volta: proprietary,
		Turing: both, Ampere: both, Ada: both, Hopper: both, Blackwell: open,
	}},
	{595, map[Architecture][]Flavour{Turing: both, Ampere: both, Ada: both, Hopper: both, Blackwell: open, Rubin: open}},
	{610, map[Architecture][]Flavour{Turing: both, Ampere: both, Ada: both, Hopper: both, Blackwell: open, Rubin: open}},
	{550, map[Architecture][]Flavour{
		Maxwell: proprietary, Pascal: proprietary, Volta: proprietary,
		Turing: closedFirst, Ampere: closedFirst, Ada: closedFirst, Hopper: closedFirst,
	}},
	{535, map[Architecture][]Flavour{
		Maxwell: proprietary, Pascal: proprietary, Volta: proprietary,
		Turing: closedFirst, Ampere: closedFirst, Ada: closedFirst, Hopper: closedFirst,
	}},
	{470, map[Architecture][]Flavour{Kepler: proprietary, Maxwell: proprietary, Pascal: proprietary, Volta: proprietary, Turing: proprietary, Ampere: proprietary}},
}

// DriverBranches lists the numbers of the branches kgpu knows.
func DriverBranches() []int {
	var out []int
	for _, b := range driverBranches {
		out = append(out, b.Number)
	}
	return out
}

// LookupDriverBranch returns the branch with this number.
func LookupDriverBranch(number int) (DriverBranch, bool) {
	for _, b := range driverBranches {
		if b.Number == number {
			return b, true
		}
	}
	return DriverBranch{}, false
}

// driverOffers says which branches a source has for a release of a distribution.
// Sources: packages.ubuntu.com for the archive; the listing of https://developer.download.nvidia.com/compute/cuda/repos/ and the
// driver installation guide for NVIDIA's, which for Debian 13 has nothing before 590 (NVIDIA/cuda-repo-management, issue 38); the
// package lists of bookworm and trixie (non-free, contrib) for Debian's. 470 is in
// Ubuntu's archive up to 24.04 only. Of the PPA's branches 550 was seen for both releases.
var driverOffers = map[DriverSource]map[string][]int{
	FromUbuntu: {
		"ubuntu 20.04": {470},
		"ubuntu 22.04": {580, 470},
		"ubuntu 24.04": {580, 595, 610, 470},
		"ubuntu 26.04": {580, 595, 610},
	},
	FromCUDA: {
		"ubuntu 22.04": {580, 595, 610},
		"ubuntu 24.04": {580, 595, 610},
		"ubuntu 26.04": {580, 595, 610},
		"debian 12":    {580, 595, 610},
		"debian 13":    {595, 610},
	},
	FromDebian: {
		"debian 12": {535, 470},
		"debian 13": {550},
	},
	FromPPA: {
		"ubuntu 22.04": {550},
		"ubuntu 24.04": {550},
	},
}

// DriverOffer returns the branches that a source has for a release, "ubuntu 24.04", best first.
func DriverOffer(source DriverSource, release string) []int { return driverOffers[source][release] }

// DriverSources are those that kgpu chooses from for a release, best first: modules that come built and signed need no
// compiler, no headers and no key enrolment under Secure Boot; NVIDIA's drivers are newer than Debian's.
func DriverSources(release string) []DriverSource {
	var out []DriverSource
	for _, s := range []DriverSource{FromUbuntu, FromCUDA, FromDebian} {
		if len(driverOffers[s][release]) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// PrebuiltModules reports whether a source's kernel modules come built and signed.
func PrebuiltModules(source DriverSource) bool { return source == FromUbuntu }

// firstUnversioned is the branch from which on the names of the CUDA repository's Ubuntu packages do not have it any more.
// Source: driver installation guide, "Recent updates": "Ubuntu 590 and later packages".
const firstUnversioned = 590

// Driver is a driver as a host gets it.
type Driver struct {
	Source  DriverSource
	Branch  int
	Flavour Flavour
}

// String is 580 (open) from ubuntu.
func (d Driver) String() string { return fmt.Sprintf("%d (%s) from %s", d.Branch, d.Flavour, d.Source) }

// DriverPackages are the packages of a driver without a display.
type DriverPackages struct {
	First   []string // before all others: what the modules are built against, and what pins versions
	Driver  []string
	Library string   // of Driver, the one with libnvidia-ml: its version is the driver's
	Next    []string // what follows the kernel's updates, where it is offered
}

// Packages names them for a distribution (ubuntu, debian) and the kernel release that runs.
// Sources: packages.ubuntu.com; driver installation guide, "Compute-only (headless) installation"; the package lists of Debian's
// non-free and contrib. The PPA has the names of Ubuntu's archive without -server.
func (d Driver) Packages(distribution, kernel string) DriverPackages {
	branch, open := fmt.Sprint(d.Branch), ""
	if d.Flavour == Open {
		open = "-open"
	}
	line := kernel[strings.LastIndexByte(kernel, '-')+1:] // generic, amd64: what the kernel's meta packages end with
	if d.Source == FromUbuntu {
		modules := "linux-modules-nvidia-" + branch + "-server" + open + "-"
		library := "libnvidia-compute-" + branch + "-server"
		return DriverPackages{
			Driver:  []string{modules + kernel, "nvidia-headless-no-dkms-" + branch + "-server" + open, "nvidia-utils-" + branch + "-server", library},
			Library: library, Next: []string{modules + line},
		}
	}
	p := DriverPackages{First: []string{"linux-headers-" + kernel}, Next: []string{"linux-headers-" + line}}
	switch {
	case d.Source == FromDebian && d.Branch == 470:
		const tesla = "nvidia-tesla-470"
		p.Library = "lib" + tesla + "-ml1"
		p.Driver = []string{tesla + "-kernel-dkms", "lib" + tesla + "-cuda1", p.Library, tesla + "-smi", "lib" + tesla + "-cfg1", "nvidia-persistenced"}
	case d.Source == FromDebian:
		p.Library = "libnvidia-ml1"
		p.Driver = []string{"nvidia" + open + "-kernel-dkms", "libcuda1", p.Library, "nvidia-smi", "nvidia-persistenced"}
	case distribution == "ubuntu" && (d.Branch < firstUnversioned || d.Source == FromPPA):
		p.Library = "libnvidia-compute-" + branch
		p.Driver = []string{"nvidia-dkms-" + branch + open, p.Library, "nvidia-utils-" + branch, "nvidia-compute-utils-" + branch}
	case distribution == "ubuntu":
		p.First = append(p.First, "nvidia-driver-pinning-"+branch)
		p.Library = "libnvidia-compute"
		p.Driver = []string{"nvidia-dkms" + open, p.Library, "nvidia-persistenced"}
	default:
		p.First = append(p.First, "nvidia-driver-pinning-"+branch)
		p.Library = "libnvidia-ml1"
		p.Driver = []string{"nvidia-kernel" + open + "-dkms", "nvidia-driver-cuda", p.Library, "nvidia-persistenced"}
	}
	return p
}

// HasFabricManager reports whether a source has the fabric manager that hosts with NVSwitches need.
func HasFabricManager(source DriverSource) bool { return source == FromUbuntu || source == FromCUDA }

// FabricManager is the package of the fabric manager, which hosts with NVSwitches need in exactly the driver's version.
func (d Driver) FabricManager(distribution string) string {
	if d.Source == FromUbuntu || distribution == "ubuntu" && d.Branch < firstUnversioned {
		return fmt.Sprintf("nvidia-fabricmanager-%d", d.Branch)
	}
	return "nvidia-fabricmanager"
}

// Flavours are those in which the branch runs every one of the architectures, best first; none: it does not run all.
func (b DriverBranch) Flavours(all []Architecture) []Flavour {
	if len(all) == 0 {
		return both
	}
	common := slices.Clone(b.Runs[all[0]])
	for _, a := range all {
		common = slices.DeleteFunc(common, func(f Flavour) bool { return !slices.Contains(b.Runs[a], f) })
	}
	return common
}
