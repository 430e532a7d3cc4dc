package preflight

import (
	"regexp"
	"slices"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
)

var number = regexp.MustCompile(`\d+`)

// kernelVersion splits a release, such as 6.8.0-45-generic-64k, into its numbers and its line.
func kernelVersion(release string) (numbers []int, line string) {
	version, line := catalog.SplitKernel(release)
	for _, digits := range number.FindAllString(version, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			break // more digits than any version has
		}
		numbers = append(numbers, n)
	}
	return numbers, line
}

// newestKernel is the kernel that a reboot would start: the newest installed one of the running kernel's line.
func newestKernel(f *facts.Host) string {
	newest := f.Kernel
	for _, k := range f.Kernels {
		numbers, line := kernelVersion(k)
		if best, want := kernelVersion(newest); line == want && slices.Compare(numbers, best) > 0 {
			newest = k
		}
	}
	return newest
}
