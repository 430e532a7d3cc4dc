package catalog

import (
	"regexp"
	"strings"
)

// SplitKernel splits a kernel's release (uname -r) into its version and its line, which ends the names of the packages
// that follow it: 6.8.0-45-generic-64k is 6.8.0-45 of the line generic-64k, 6.1.0-18-cloud-amd64 is 6.1.0-18 of
// cloud-amd64. A kernel that somebody built may have no line.
// Source: packages.ubuntu.com, linux-image-*; packages.debian.org, source package linux.
func SplitKernel(release string) (version, line string) {
	parts := strings.Split(release, "-")
	for i, part := range parts {
		if part == "" || part[0] < '0' || part[0] > '9' {
			return strings.Join(parts[:i], "-"), strings.Join(parts[i:], "-")
		}
	}
	return release, ""
}

// These match the releases of distributions' kernels. Ubuntu's have no patch level, and an ABI of up to four digits,
// where its mainline archive has six. Sources: packages.ubuntu.com, linux-image-*; kernel.ubuntu.com/mainline;
// packages.debian.org, source package linux.
var (
	ubuntuKernels = regexp.MustCompile(`^\d+\.\d+\.0-\d{1,4}-[a-z][a-z0-9-]*$`)
	debianKernels = regexp.MustCompile(`^\d+\.\d+\.\d+(\+(deb|bpo)[0-9.u]*)?(-\d[0-9a-z.+~]*)*-((cloud|rt)-)?(amd64|arm64)(-16k)?$`)
	othersKernels = regexp.MustCompile(`-(xanmod|liquorix|zabbly|pve)`)
)

// DistributionKernel reports whether a kernel's release has the form of Ubuntu's or Debian's.
func DistributionKernel(release string) bool {
	return (ubuntuKernels.MatchString(release) || debianKernels.MatchString(release)) && !othersKernels.MatchString(release)
}

var debianUpload = regexp.MustCompile(`^\d+\.\d+\.\d+-\d+([+~][0-9a-z.+~]+)?$`)

// KernelPackageOf reports whether a kernel package's version is the distribution's: Ubuntu's is the release and an
// upload number, Debian's the version of the source package.
func KernelPackageOf(distribution, release, version string) bool {
	if distribution == "debian" {
		return debianUpload.MatchString(version)
	}
	number, _ := SplitKernel(release)
	return strings.HasPrefix(version, number+".") && ubuntuKernels.MatchString(release)
}

// HeadersPackage is the package with the headers of a kernel.
func HeadersPackage(release string) string {
	if strings.HasSuffix(release, "-pve") {
		return "proxmox-headers-" + release
	}
	return "linux-headers-" + release
}
