package catalog

import (
	"regexp"
	"strconv"
	"strings"
)

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
