package catalog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Flavour is the kind of a driver's kernel modules.
type Flavour string

const (
	Open        Flavour = "open"
	Proprietary Flavour = "proprietary"
)

// DriverSource is the package repository of a driver.
type DriverSource string

const (
	FromUbuntu DriverSource = "ubuntu" // the Ubuntu archive: -server packages, modules built and signed by Canonical
	FromCUDA   DriverSource = "cuda"   // NVIDIA's CUDA repository: modules built on the host by DKMS
	FromDebian DriverSource = "debian" // Debian's non-free: modules built on the host by DKMS
	FromPPA    DriverSource = "ppa"    // the graphics-drivers PPA, only on request: modules built on the host by DKMS
	NoDriver   DriverSource = "none"   // a driver is installed already and not kgpu's
)

// driverOffers says which branches a source has for a release of a distribution, best first.
//
// Ubuntu's archive: packages.ubuntu.com. It makes a new feature branch into the next: 610 is 615 there since 6.8.0-146.146+2 of
// noble and 7.0.0-38.38+2 of resolute. 615 was seen for noble and resolute, 620 for none.
//
// NVIDIA's repository: the driver installation guide; NVIDIA/cuda-repo-management, issue 38, for Debian 13, which begins with 590;
// NVIDIA/gpu-driver-container for Ubuntu 26.04, of which no packages before 595 were seen. 595, 610 and 615 were seen; of 620 the
// guide tells (9 November 2026), and nobody was seen to have it yet: where 580 is not offered 595 comes first, although it ends
// sooner, until 620 is known to be there.
//
// Debian's: the package lists of bookworm and trixie (non-free, contrib). Of the PPA's branches 550 was seen for both releases.
var driverOffers = map[DriverSource]map[string][]int{
	FromUbuntu: {
		"ubuntu 22.04": {580, 470},
		"ubuntu 24.04": {580, 595, 615, 470},
		"ubuntu 26.04": {580, 595, 615},
	},
	FromCUDA: {
		"ubuntu 22.04": {580, 595, 620, 615, 610},
		"ubuntu 24.04": {580, 595, 620, 615, 610},
		"ubuntu 26.04": {595, 620, 615, 610},
		"debian 12":    {580, 595, 620, 615, 610},
		"debian 13":    {595, 620, 615, 610},
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

// DriverSuccessor is the branch that a source has in place of another one; false if there is none.
func DriverSuccessor(source DriverSource, branch int) (int, bool) {
	if source == FromUbuntu && branch == 610 {
		return 615, true
	}
	return 0, false
}

// DriverOffer returns the branches that a source has for a release such as "ubuntu 24.04", best first.
func DriverOffer(source DriverSource, release string) []int { return driverOffers[source][release] }

// DriverSources are the sources that kgpu chooses from for a release, best first: prebuilt signed modules need no
// compiler, headers or key enrolment under Secure Boot, and NVIDIA's drivers are newer than Debian's.
func DriverSources(release string) []DriverSource {
	var out []DriverSource
	for _, s := range []DriverSource{FromUbuntu, FromCUDA, FromDebian} {
		if len(driverOffers[s][release]) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// firstUnversioned is the first branch whose Ubuntu packages in the CUDA repository have no branch in their names.
// Source: driver installation guide, "Recent updates": "Ubuntu 590 and later packages".
const firstUnversioned = 590

// Driver is a driver that a host can get.
type Driver struct {
	Source   DriverSource
	Branch   int
	Flavour  Flavour
	Compiled bool // DKMS builds the modules on the host, although the source is Ubuntu's archive
}

// String is such as "580 (open) from ubuntu".
func (d Driver) String() string { return fmt.Sprintf("%d (%s) from %s", d.Branch, d.Flavour, d.Source) }

// Prebuilt reports whether the kernel modules are prebuilt and signed. Ubuntu stopped building those of 470 at 6.8.0-31
// of noble; nvidia-dkms-470-server continues.
// Source: packages.ubuntu.com, linux-modules-nvidia-470-server-generic and nvidia-dkms-470-server of jammy and noble.
func (d Driver) Prebuilt() bool { return d.Source == FromUbuntu && d.Branch != 470 && !d.Compiled }

// DriverPackages are the packages of a driver without support for displays.
type DriverPackages struct {
	First   []string // installed before the others: kernel headers and pinning packages
	Driver  []string
	Library string   // the one of Driver that has libnvidia-ml, and therefore the driver's version
	Next    []string // packages that follow the kernel's updates, if the source has them
}

// Packages returns the driver's packages for a distribution (ubuntu, debian) and the running kernel. In NVIDIA's
// repository the pinning package decides which driver packages without a branch in their names are; some of drivers
// before 590 have none either.
// Sources: packages.ubuntu.com; driver installation guide, "Compute-only (headless) installation" and "Version locking"; the package
// lists of Debian's non-free and contrib. The PPA has the names of Ubuntu's archive without -server.
func (d Driver) Packages(distribution, kernel string) DriverPackages {
	branch, open := fmt.Sprint(d.Branch), ""
	if d.Flavour == Open {
		open = "-open"
	}
	p := DriverPackages{First: []string{"linux-headers-" + kernel}, Next: followers("linux-headers-", kernel)}
	if d.Source == FromCUDA {
		p.First = append(p.First, "nvidia-driver-pinning-"+branch)
	}
	switch {
	case d.Source == FromUbuntu:
		server := branch + "-server"
		modules := "nvidia-dkms-" + server + open
		if prebuilt := "linux-modules-nvidia-" + server + open + "-"; d.Prebuilt() {
			modules, p.First, p.Next = prebuilt+kernel, nil, followers(prebuilt, kernel)
		}
		p.Library = "libnvidia-compute-" + server
		p.Driver = []string{modules, "nvidia-headless-no-dkms-" + server + open, "nvidia-utils-" + server, p.Library}
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
		p.Library = "libnvidia-compute"
		p.Driver = []string{"nvidia-dkms" + open, p.Library, "nvidia-persistenced"}
	default:
		p.Library = "libnvidia-ml1"
		p.Driver = []string{"nvidia-kernel" + open + "-dkms", "nvidia-driver-cuda", p.Library, "nvidia-persistenced"}
	}
	return p
}

// followers is the package of a kind that follows the kernels of a line; nil if the kernel is of no line.
func followers(kind, kernel string) []string {
	if _, line := SplitKernel(kernel); line != "" {
		return []string{kind + line}
	}
	return nil
}

// HasFabricManager reports whether a source has the fabric manager, which hosts with NVSwitches need.
func HasFabricManager(source DriverSource) bool { return source == FromUbuntu || source == FromCUDA }

// FabricManager is the package of the fabric manager, which hosts with NVSwitches need in exactly the driver's version. In NVIDIA's
// repository its name has had no branch since 580.
// Source: NVIDIA/gpu-driver-container, local-repo.sh of ubuntu24.04.
func (d Driver) FabricManager() string {
	if d.Source == FromUbuntu {
		return fmt.Sprintf("nvidia-fabricmanager-%d", d.Branch)
	}
	return "nvidia-fabricmanager"
}

// InstalledPart is what an installed package tells about the driver that it belongs to.
type InstalledPart struct {
	Branch  int
	Flavour Flavour // of its kernel modules; empty if it has none
	Library bool    // it contains libnvidia-ml
	Pinning bool    // it pins other packages to a branch
}

// These match the names of driver packages. Packages of the container toolkit and of CUDA have versions of their own.
// Sources: packages.ubuntu.com and packages.debian.org, source packages nvidia-graphics-drivers*; the listing of
// https://developer.download.nvidia.com/compute/cuda/repos/.
var (
	driverNames  = regexp.MustCompile(`^((lib)?nvidia-|linux-(modules|objects|signatures)-nvidia-|xserver-xorg-video-nvidia|firmware-nvidia-|cuda-drivers|lib(egl|gles|glx)-nvidia|libcuda1$)`)
	toolkitNames = regexp.MustCompile(`^(libnvidia-container|nvidia-container|nvidia-docker)`)
	libraryNames = regexp.MustCompile(`^libnvidia-(compute(-.+)?|(.+-)?ml1)$`)
	moduleNames  = regexp.MustCompile(`^(linux-modules-nvidia-.+|nvidia-dkms(-.+)?|nvidia-(.+-)?kernel-dkms|nvidia-kernel-.*dkms)$`)
	kernelNames  = regexp.MustCompile(`^linux-(?:modules|objects|signatures)-nvidia-(\d+)-`) // these have the kernel's version
)

// firstDriver is older than all branches that a host may still have, and newer than versions of NVIDIA's other
// software.
const firstDriver = 300

// LookupDriverPart tells which driver an installed package belongs to; false if it belongs to none.
func LookupDriverPart(name, version string) (InstalledPart, bool) {
	if !driverNames.MatchString(name) || toolkitNames.MatchString(name) {
		return InstalledPart{}, false
	}
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	number, _, _ := strings.Cut(version, ".")
	number, _, _ = strings.Cut(number, "-")
	if m := kernelNames.FindStringSubmatch(name); m != nil {
		number = m[1]
	}
	branch, err := strconv.Atoi(number)
	if err != nil || branch < firstDriver {
		return InstalledPart{}, false
	}
	p := InstalledPart{Branch: branch, Library: libraryNames.MatchString(name), Pinning: strings.HasPrefix(name, "nvidia-driver-pinning-")}
	if moduleNames.MatchString(name) {
		p.Flavour = Proprietary
		if strings.Contains(name, "-open") {
			p.Flavour = Open
		}
	}
	return p, true
}
