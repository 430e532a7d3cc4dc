package prepare

import (
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// What kgpu says that it was proven with is what the lab has.
func TestProvenReleases(t *testing.T) {
	lab := map[string]bool{}
	for _, r := range []release{release136, release135, release123} {
		lab[r.version] = true
	}
	proven := 0
	for n := range 1000 {
		if m, known := catalog.Kubernetes(n); known {
			if v, ok := m.Tested(); ok {
				proven++
				if !lab[v.String()] {
					t.Errorf("the lab has no %s", v)
				}
			}
		}
	}
	if proven != len(lab) {
		t.Errorf("kgpu says so of %d versions, the lab has %d", proven, len(lab))
	}
}
