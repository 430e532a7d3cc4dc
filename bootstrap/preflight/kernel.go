package preflight

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
)

var number = regexp.MustCompile(`\d+`)

// kernelVersion splits a release, such as 6.8.0-31-generic, into its numbers and its flavour.
func kernelVersion(release string) (numbers []int, flavour string) {
	if at := strings.LastIndexByte(release, '-'); at >= 0 {
		release, flavour = release[:at], release[at+1:]
	}
	for _, digits := range number.FindAllString(release, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			break // more digits than any version has
		}
		numbers = append(numbers, n)
	}
	return numbers, flavour
}

// newestKernel is the installed kernel that a reboot would start: the newest of the running one's flavour.
func newestKernel(f *facts.Host) string {
	newest := f.Kernel
	for _, k := range f.Kernels {
		numbers, flavour := kernelVersion(k)
		if best, want := kernelVersion(newest); flavour == want && slices.Compare(numbers, best) > 0 {
			newest = k
		}
	}
	return newest
}
