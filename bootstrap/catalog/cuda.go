package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// CUDA is a release of NVIDIA's CUDA toolkit.
type CUDA struct {
	Version  string         // 12.9
	Driver   int            // the driver branch that was released with it and supports it fully
	Runs     []Architecture // the architectures that it compiles for
	Releases []string       // distribution releases for which NVIDIA's repository has it
	Download int            // approximate size of its packages in MB
	Disk     int            // approximate installed size in MB
}

// NoCUDA stands for no toolkit in the inventory.
const NoCUDA = "none"

var (
	sinceTuring  = []Architecture{Turing, Ampere, Ada, Hopper, Blackwell, Rubin}
	untilVolta   = []Architecture{Maxwell, Pascal, Volta}
	cudaReleases = []string{"ubuntu 22.04", "ubuntu 24.04", "debian 12"}
)

// cudaToolkits, oldest first.
// Sources. Driver: CUDA 13.3 release notes, "CUDA Toolkit and Corresponding Driver Versions" (12.9 ≥ 575.51.03, 13.0 ≥ 580.65.06,
// 13.1 ≥ 590.44.01, 13.2 ≥ 595.45.04, 13.3 ≥ 610.43.02); 13.4 comes without one, 615 is of its time. Runs: CUDA 12.9 and 13.0 release notes:
// 13.0 dropped Maxwell, Pascal and Volta. Releases: NVIDIA's listings; that for Debian 13 began with 13.1, that for Ubuntu
// 26.04 has 13.3 and newer. What Kepler and branch 470 can have, 11.4, is in none of them.
// Download: the sums of the archives of 12.9.2 and 13.0.3 for x86-64 in NVIDIA's redistrib_*.json, which hold what the packages
// hold; later releases are about as large as 13.0. Disk: cuda-toolkit-13-3 was measured at 7.7 GB; 12.9 in proportion.
var cudaToolkits = []CUDA{
	{"12.9", 575, slices.Concat(untilVolta, sinceTuring[:5]), cudaReleases, 4600, 8800},
	{"13.0", 580, sinceTuring, cudaReleases, 4000, 7700},
	{"13.1", 590, sinceTuring, append(cudaReleases, "debian 13"), 4000, 7700},
	{"13.2", 595, sinceTuring, append(cudaReleases, "debian 13"), 4000, 7700},
	{"13.3", 610, sinceTuring, append(cudaReleases, "debian 13", "ubuntu 26.04"), 4000, 7700},
	{"13.4", 615, sinceTuring, append(cudaReleases, "debian 13", "ubuntu 26.04"), 4000, 7700},
}

// leastDriver is the oldest branch that runs every toolkit of a major version, by CUDA's minor version compatibility.
// Source: CUDA compatibility guide, "Minor Version Compatibility".
var leastDriver = map[string]int{"12": 525, "13": 580}

// CUDAToolkits lists the releases, oldest first.
func CUDAToolkits() []CUDA { return cudaToolkits }

// LookupCUDA returns the release with this version, such as 12.9.
func LookupCUDA(version string) (CUDA, bool) {
	return find(cudaToolkits, func(c CUDA) bool { return c.Version == version })
}

// NearestCUDA is the known version closest to another one; empty if that is not a version.
func NearestCUDA(version string) string {
	want, ok := cudaNumber(version)
	if !ok {
		return ""
	}
	nearest := slices.MinFunc(cudaToolkits, func(a, b CUDA) int { return a.distance(want) - b.distance(want) })
	return nearest.Version
}

func (c CUDA) distance(number int) int {
	n, _ := cudaNumber(c.Version) // the table's versions are numbers
	return max(n-number, number-n)
}

// cudaNumber makes a version comparable: 12.9 becomes 12009.
func cudaNumber(version string) (int, bool) {
	major, minor, _ := strings.Cut(version, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return 1000*a + b, errA == nil && errB == nil && a >= 0 && b >= 0 && b < 1000
}

func (c CUDA) major() string {
	major, _, _ := strings.Cut(c.Version, ".")
	return major
}

// LeastDriver is the oldest driver branch that runs it. Its features that are newer than the driver fail there.
func (c CUDA) LeastDriver() int { return leastDriver[c.major()] }

// Package is the toolkit's package. The package cuda is not used, because it installs a driver too.
func (c CUDA) Package() string { return "cuda-toolkit-" + strings.ReplaceAll(c.Version, ".", "-") }

// CUDNN is the deep neural network library for a major version of CUDA.
type CUDNN struct {
	Package        string
	Runs           []Architecture
	Download, Disk int // approximate sizes in MB
}

// CUDNN returns the library for the toolkit.
// Sources: cuDNN 9.17 support matrix: Turing and newer, with CUDA 12 as with 13; cuDNN's redistrib_9.22.0.json for the download;
// the disk in the toolkit's proportion.
func (c CUDA) CUDNN() CUDNN {
	return CUDNN{Package: "cudnn9-cuda-" + c.major(), Runs: sinceTuring, Download: 950, Disk: 1900}
}
