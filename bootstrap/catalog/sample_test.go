package catalog

import (
	"strings"
	"testing"
)

// TestSamplesFitTheDrivers: every branch that a source offers runs its sample, by CUDA's rule for the sample's major
// version.
func TestSamplesFitTheDrivers(t *testing.T) {
	for branch, want := range map[int]string{375: "v0.1", 440: "v0.1", 450: "cuda11", 470: "cuda11", 515: "cuda11", 525: "cuda12", 535: "cuda12", 580: "cuda12", 620: "cuda12"} {
		s := SampleOf(branch)
		if !strings.Contains(s.Image, want) || !strings.HasSuffix(s.Program, "/vectorAdd") {
			t.Errorf("branch %d gets %+v, want %s", branch, s, want)
		}
	}
	for source, releases := range driverOffers {
		for release, branches := range releases {
			for _, b := range branches {
				_, version, made := strings.Cut(SampleOf(b).Image, "vectoradd-cuda")
				major, _, _ := strings.Cut(version, ".")
				least := map[string]int{"11": 450, "12": leastDriver["12"]}[major]
				if !made || least == 0 || b < least {
					t.Errorf("%d of %s for %s does not run %s", b, source, release, SampleOf(b).Image)
				}
				// CUDA 12 has nothing for Kepler.
				if branch, _ := LookupDriverBranch(b); len(branch.Runs[Kepler]) > 0 && major == "12" {
					t.Errorf("%d runs Kepler, and %s does not", b, SampleOf(b).Image)
				}
			}
		}
	}
	for _, s := range Samples() {
		if strings.Contains(s.Image, "nvidia/cuda:") {
			t.Errorf("%s is deleted six months after the end of its driver branch", s.Image)
		}
	}
}
