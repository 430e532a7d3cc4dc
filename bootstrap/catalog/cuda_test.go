package catalog

import (
	"slices"
	"testing"
)

// TestCUDATable: the toolkits are sorted, and each has a repository, architectures, a driver branch that runs it, and
// sizes.
func TestCUDATable(t *testing.T) {
	last := 0
	for _, c := range CUDAToolkits() {
		n, ok := cudaNumber(c.Version)
		if !ok || n <= last || c.LeastDriver() == 0 || c.Driver < c.LeastDriver() || c.Download == 0 || c.Disk < c.Download || len(c.Runs) == 0 {
			t.Errorf("%+v", c)
		}
		last = n
		for _, release := range c.Releases {
			if !slices.Contains(DriverSources(release), FromCUDA) {
				t.Errorf("%s is for %s, where NVIDIA has no repository", c.Version, release)
			}
		}
	}
	c, ok := LookupCUDA("12.9")
	if !ok || c.Package() != "cuda-toolkit-12-9" || c.CUDNN().Package != "cudnn9-cuda-12" {
		t.Errorf("%+v has %s and %s", c, c.Package(), c.CUDNN().Package)
	}
}

func TestNearestCUDA(t *testing.T) {
	for version, want := range map[string]string{
		"12.8": "12.9", "11.4": "12.9", "13.10": "13.4", "13.2": "13.2", "14.0": "13.4", "12": "", "latest": "", "13.x": "", "-1.2": "", "": "",
	} {
		if got := NearestCUDA(version); got != want {
			t.Errorf("%q is near %q, want %q", version, got, want)
		}
	}
}
