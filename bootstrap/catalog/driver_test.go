package catalog

import (
	"slices"
	"testing"
)

// TestDriverTables: every branch that a source offers is known, and every architecture of a branch has a flavour.
func TestDriverTables(t *testing.T) {
	for source, releases := range driverOffers {
		for release, branches := range releases {
			if r, ok := LookupRelease(release); !ok || r.Ended() {
				t.Errorf("%s has drivers for %s, on which nothing is tried", source, release)
			}
			for _, b := range branches {
				if next, succeeded := DriverSuccessor(source, b); succeeded {
					t.Errorf("%s offers %d for %s, which it has made into %d", source, b, release, next)
				}
				if _, ok := LookupDriverBranch(b); !ok {
					t.Errorf("%s offers %d for %s, which is not known", source, b, release)
				}
			}
			if slices.Contains(DriverSources(release), source) == (source == FromPPA) {
				t.Errorf("is %s chosen for %s unasked?", source, release)
			}
		}
	}
	for i, b := range driverBranches {
		if i > 0 && b.Ended() != driverBranches[i-1].Ended() && !b.Ended() {
			t.Errorf("%d comes after branches that ended", b.Number)
		}
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

func TestDriverPackages(t *testing.T) {
	for _, c := range []struct {
		d            Driver
		distribution string
		want         DriverPackages
	}{
		{Driver{Source: FromUbuntu, Branch: 580, Flavour: Open}, "ubuntu", DriverPackages{
			Driver:  []string{"linux-modules-nvidia-580-server-open-6.8.0-146-generic", "nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server", "libnvidia-compute-580-server"},
			Library: "libnvidia-compute-580-server", Next: []string{"linux-modules-nvidia-580-server-open-generic"},
		}},
		{Driver{Source: FromUbuntu, Branch: 580, Flavour: Open, Compiled: true}, "ubuntu", DriverPackages{
			First:   []string{"linux-headers-6.8.0-146-generic"},
			Driver:  []string{"nvidia-dkms-580-server-open", "nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server", "libnvidia-compute-580-server"},
			Library: "libnvidia-compute-580-server", Next: []string{"linux-headers-generic"},
		}},
		{Driver{Source: FromUbuntu, Branch: 470, Flavour: Proprietary}, "ubuntu", DriverPackages{
			First:   []string{"linux-headers-6.8.0-146-generic"},
			Driver:  []string{"nvidia-dkms-470-server", "nvidia-headless-no-dkms-470-server", "nvidia-utils-470-server", "libnvidia-compute-470-server"},
			Library: "libnvidia-compute-470-server", Next: []string{"linux-headers-generic"},
		}},
		{Driver{Source: FromCUDA, Branch: 580, Flavour: Proprietary}, "ubuntu", DriverPackages{
			First:  []string{"linux-headers-6.8.0-146-generic", "nvidia-driver-pinning-580"},
			Driver: []string{"nvidia-dkms-580", "libnvidia-compute-580", "nvidia-utils-580", "nvidia-compute-utils-580"}, Library: "libnvidia-compute-580",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{Source: FromCUDA, Branch: 595, Flavour: Open}, "ubuntu", DriverPackages{
			First:  []string{"linux-headers-6.8.0-146-generic", "nvidia-driver-pinning-595"},
			Driver: []string{"nvidia-dkms-open", "libnvidia-compute", "nvidia-persistenced"}, Library: "libnvidia-compute",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{Source: FromCUDA, Branch: 580, Flavour: Open}, "debian", DriverPackages{
			First:  []string{"linux-headers-6.8.0-146-generic", "nvidia-driver-pinning-580"},
			Driver: []string{"nvidia-kernel-open-dkms", "nvidia-driver-cuda", "libnvidia-ml1", "nvidia-persistenced"}, Library: "libnvidia-ml1",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{Source: FromPPA, Branch: 595, Flavour: Open}, "ubuntu", DriverPackages{
			First:  []string{"linux-headers-6.8.0-146-generic"},
			Driver: []string{"nvidia-dkms-595-open", "libnvidia-compute-595", "nvidia-utils-595", "nvidia-compute-utils-595"}, Library: "libnvidia-compute-595",
			Next: []string{"linux-headers-generic"},
		}},
		{Driver{Source: FromDebian, Branch: 550, Flavour: Proprietary}, "debian", DriverPackages{
			First:  []string{"linux-headers-6.8.0-146-generic"},
			Driver: []string{"nvidia-kernel-dkms", "libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-persistenced"}, Library: "libnvidia-ml1",
			Next: []string{"linux-headers-generic"},
		}},
	} {
		got := c.d.Packages(c.distribution, "6.8.0-146-generic")
		if !slices.Equal(got.First, c.want.First) || !slices.Equal(got.Driver, c.want.Driver) || !slices.Equal(got.Next, c.want.Next) || got.Library != c.want.Library {
			t.Errorf("%s for %s: %+v", c.d, c.distribution, got)
		}
	}
}

// TestPackagesThatFollowTheKernel: kernels with a dash in their line have packages that follow them, and kernels that
// somebody built have none.
func TestPackagesThatFollowTheKernel(t *testing.T) {
	for kernel, want := range map[string][]string{
		"6.8.0-146-generic-64k": {"linux-modules-nvidia-580-server-open-generic-64k"}, "6.8.0-1021-aws": {"linux-modules-nvidia-580-server-open-aws"}, "6.12.9": nil,
	} {
		if got := (Driver{Source: FromUbuntu, Branch: 580, Flavour: Open}).Packages("ubuntu", kernel).Next; !slices.Equal(got, want) {
			t.Errorf("%s is followed by %q, want %q", kernel, got, want)
		}
	}
	if got := (Driver{Source: FromDebian, Branch: 550, Flavour: Open}).Packages("debian", "6.12.41+deb13-cloud-amd64").Next; !slices.Equal(got, []string{"linux-headers-cloud-amd64"}) {
		t.Errorf("a cloud's kernel of Debian is followed by %q", got)
	}
}

func TestFabricManager(t *testing.T) {
	for want, drivers := range map[string][]Driver{
		"nvidia-fabricmanager-580": {{Source: FromUbuntu, Branch: 580, Flavour: Open}}, "nvidia-fabricmanager-595": {{Source: FromUbuntu, Branch: 595, Flavour: Proprietary}},
		"nvidia-fabricmanager": {{Source: FromCUDA, Branch: 580, Flavour: Open}, {Source: FromCUDA, Branch: 595, Flavour: Open}, {Source: FromCUDA, Branch: 620, Flavour: Open}},
	} {
		for _, d := range drivers {
			if got := d.FabricManager(); got != want {
				t.Errorf("%s: %s, want %s", d, got, want)
			}
		}
	}
}

// TestDriverBranches: terms and ends are those of NVIDIA's table, and from 615 on there are only open modules.
func TestDriverBranches(t *testing.T) {
	for number, want := range map[int]string{
		580: "long-term branch, fixes until June 2028", 620: "long-term branch, fixes until September 2029",
		595: "production branch, fixes until March 2027", 615: "new feature branch, fixes until the next one comes",
		610: "new feature branch, the last fixes came in August 2026", 550: "production branch, the last fixes came in April 2025",
		535: "long-term branch, the last fixes came in June 2026", 470: "long-term branch, the last fixes came in July 2024",
	} {
		b, ok := LookupDriverBranch(number)
		if !ok || b.Support() != want {
			t.Errorf("%d: %q, want %q", number, b.Support(), want)
		}
		for a, flavours := range b.Runs {
			if closed := slices.Contains(flavours, Proprietary); closed && (number >= 615 || a == Blackwell || a == Rubin) {
				t.Errorf("%d runs %s with %v", number, a, flavours)
			}
		}
		if rubin := len(b.Runs[Rubin]) > 0; rubin != (number >= 595) {
			t.Errorf("%d runs Rubin: %t", number, rubin)
		}
	}
}
