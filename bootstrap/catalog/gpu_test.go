package catalog

import (
	"slices"
	"testing"
)

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

// The list is whole: every line has an ID of its own and a chip whose architecture is known.
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

// What the tables of drivers say of each other: a branch that is offered is known, and every architecture that a branch
// runs has a flavour.
func TestDriverTables(t *testing.T) {
	for source, releases := range driverOffers {
		for release, branches := range releases {
			for _, b := range branches {
				if _, ok := LookupDriverBranch(b); !ok {
					t.Errorf("%s offers %d for %s, which is not known", source, b, release)
				}
			}
			if slices.Contains(DriverSources(release), source) == (source == FromPPA) {
				t.Errorf("is %s chosen for %s unasked?", source, release)
			}
		}
	}
	for _, b := range driverBranches {
		for a, flavours := range b.Runs {
			if len(flavours) == 0 {
				t.Errorf("%d runs %s without modules", b.Number, a)
			}
		}
		if got := b.Flavours([]Architecture{Volta, Blackwell}); len(got) != 0 {
			t.Errorf("%d runs Volta and Blackwell at once: %v", b.Number, got)
		}
	}
}

func TestPackages(t *testing.T) {
	for _, c := range []struct {
		d            Driver
		distribution string
		want         DriverPackages
	}{
		{Driver{FromUbuntu, 580, Open}, "ubuntu", DriverPackages{
			Driver:  []string{"linux-modules-nvidia-580-server-open-6.8.0-31-generic", "nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server", "libnvidia-compute-580-server"},
			Library: "libnvidia-compute-580-server", Next: []string{"linux-modules-nvidia-580-server-open-generic"},
		}},
		{Driver{FromCUDA, 580, Proprietary}, "ubuntu", DriverPackages{
			First:  []string{"linux-headers-6.8.0-31-generic"},
			Driver: []string{"nvidia-dkms-580", "libnvidia-compute-580", "nvidia-utils-580", "nvidia-compute-utils-580"}, Library: "libnvidia-compute-580",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{FromCUDA, 595, Open}, "ubuntu", DriverPackages{
			First:  []string{"linux-headers-6.8.0-31-generic", "nvidia-driver-pinning-595"},
			Driver: []string{"nvidia-dkms-open", "libnvidia-compute", "nvidia-persistenced"}, Library: "libnvidia-compute",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{FromCUDA, 580, Open}, "debian", DriverPackages{
			First:  []string{"linux-headers-6.8.0-31-generic", "nvidia-driver-pinning-580"},
			Driver: []string{"nvidia-kernel-open-dkms", "nvidia-driver-cuda", "libnvidia-ml1", "nvidia-persistenced"}, Library: "libnvidia-ml1",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{FromPPA, 595, Open}, "ubuntu", DriverPackages{
			First:  []string{"linux-headers-6.8.0-31-generic"},
			Driver: []string{"nvidia-dkms-595-open", "libnvidia-compute-595", "nvidia-utils-595", "nvidia-compute-utils-595"}, Library: "libnvidia-compute-595",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{FromDebian, 550, Proprietary}, "debian", DriverPackages{
			First:  []string{"linux-headers-6.8.0-31-generic"},
			Driver: []string{"nvidia-kernel-dkms", "libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-persistenced"}, Library: "libnvidia-ml1",
			Next: []string{"linux-headers-generic"},
		}},
	} {
		got := c.d.Packages(c.distribution, "6.8.0-31-generic")
		if !slices.Equal(got.First, c.want.First) || !slices.Equal(got.Driver, c.want.Driver) || !slices.Equal(got.Next, c.want.Next) || got.Library != c.want.Library {
			t.Errorf("%s for %s: %+v", c.d, c.distribution, got)
		}
	}
}
