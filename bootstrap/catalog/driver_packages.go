package catalog

import (
	"regexp"
	"strconv"
	"strings"
)

// InstalledPart is what the name and the version of an installed package tell of the driver that it is a part of.
type InstalledPart struct {
	Branch  int
	Flavour Flavour // of kernel modules; empty: it has none
	Library bool    // it has libnvidia-ml
	Pinning bool    // it keeps other packages at a branch
}

// What packages of drivers are called. Those of the container toolkit and of CUDA have versions of their own, which are no
// driver's. Sources: packages.ubuntu.com and packages.debian.org, source packages nvidia-graphics-drivers*; the listing of
// https://developer.download.nvidia.com/compute/cuda/repos/.
var (
	driverNames  = regexp.MustCompile(`^((lib)?nvidia-|linux-(modules|objects|signatures)-nvidia-|xserver-xorg-video-nvidia|firmware-nvidia-|cuda-drivers|lib(egl|gles|glx)-nvidia|libcuda1$)`)
	toolkitNames = regexp.MustCompile(`^(libnvidia-container|nvidia-container|nvidia-docker)`)
	libraryNames = regexp.MustCompile(`^libnvidia-(compute(-.+)?|(.+-)?ml1)$`)
	moduleNames  = regexp.MustCompile(`^(linux-modules-nvidia-.+|nvidia-dkms(-.+)?|nvidia-(.+-)?kernel-dkms|nvidia-kernel-.*dkms)$`)
	kernelNames  = regexp.MustCompile(`^linux-(?:modules|objects|signatures)-nvidia-(\d+)-`) // their versions are the kernel's
)

// firstDriver is older than every branch that a host may still have, and newer than the versions of NVIDIA's other software.
const firstDriver = 300

// LookupDriverPart tells which driver an installed package is a part of; false: it is no part of a driver.
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
