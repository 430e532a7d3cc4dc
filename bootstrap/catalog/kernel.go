package catalog

import "strings"

// SplitKernel splits a kernel's release, as uname -r has it, into its version and its line, with which the names of the packages
// end that follow it: 6.8.0-45-generic-64k is 6.8.0-45 of the line generic-64k, 6.1.0-18-cloud-amd64 is 6.1.0-18 of cloud-amd64.
// A kernel that somebody built may have no line.
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
