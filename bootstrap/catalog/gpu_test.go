package catalog

import "testing"

func TestLookupGPU(t *testing.T) {
	for id, want := range map[string]GPU{
		"102d": {"102d", "GK210GL", "Tesla K80", Kepler},
		"1eb8": {"1eb8", "TU104GL", "Tesla T4", Turing},
		"20b0": {"20b0", "GA100", "A100 SXM4 40GB", Ampere},
		"2901": {"2901", "GB100", "B200", Blackwell},
		"2081": {"2081", "GA100", "GA100", Ampere},
		"3fff": {"3fff", "", "unknown card 3fff", Blackwell},
	} {
		if got, ok := LookupGPU(id); !ok || got != want {
			t.Errorf("%s: %+v, %t", id, got, ok)
		}
	}
	for _, id := range []string{"0001", "", "xyz", "1dff"} {
		if got, ok := LookupGPU(id); ok {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// TestGPUList: every line of the list has a unique ID and a chip of a known architecture.
func TestGPUList(t *testing.T) {
	last := ""
	for id, gpu := range gpus() {
		if len(id) != 4 || gpu.Architecture == "" || gpu.Chip == "" {
			t.Errorf("%q: %+v", id, gpu)
		}
		last = max(last, id)
	}
	if n := len(gpus()); n < 900 || last < "3000" {
		t.Errorf("%d cards, the last is %s", n, last)
	}
}
