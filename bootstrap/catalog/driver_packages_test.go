package catalog

import "testing"

func TestLookupDriverPart(t *testing.T) {
	for _, c := range []struct {
		name, version string
		want          InstalledPart
		part          bool
	}{
		{"libnvidia-compute-580-server", "580.173.02-0ubuntu0.24.04.1", InstalledPart{Branch: 580, Library: true}, true},
		{"libnvidia-compute", "595.91.07-1ubuntu1", InstalledPart{Branch: 595, Library: true}, true},
		{"libnvidia-ml1", "535.216.01-1~deb12u1", InstalledPart{Branch: 535, Library: true}, true},
		{"libnvidia-tesla-470-ml1", "1:470.256.02-2", InstalledPart{Branch: 470, Library: true}, true},
		{"nvidia-dkms-580", "580.173.02-1ubuntu1", InstalledPart{Branch: 580, Flavour: Proprietary}, true},
		{"nvidia-dkms-open", "595.91.07-1ubuntu1", InstalledPart{Branch: 595, Flavour: Open}, true},
		{"nvidia-kernel-open-dkms", "580.173.02-1", InstalledPart{Branch: 580, Flavour: Open}, true},
		{"nvidia-kernel-dkms", "580.173.02-1", InstalledPart{Branch: 580, Flavour: Proprietary}, true},
		{"nvidia-tesla-470-kernel-dkms", "470.256.02-2", InstalledPart{Branch: 470, Flavour: Proprietary}, true},
		{"linux-modules-nvidia-470-server-6.8.0-31-generic", "6.8.0-31.31", InstalledPart{Branch: 470, Flavour: Proprietary}, true},
		{"linux-modules-nvidia-580-server-open-generic", "6.8.0-31.31", InstalledPart{Branch: 580, Flavour: Open}, true},
		{"linux-objects-nvidia-580-server-open-6.8.0-31-generic", "6.8.0-31.31", InstalledPart{Branch: 580}, true},
		{"nvidia-driver-pinning-595", "595-1ubuntu1", InstalledPart{Branch: 595, Pinning: true}, true},
		{"nvidia-fabricmanager", "595.91.07-1ubuntu1", InstalledPart{Branch: 595}, true},
		{"cuda-drivers", "580.173.02-1ubuntu1", InstalledPart{Branch: 580}, true},
		{"libcuda1", "535.216.01-1~deb12u1", InstalledPart{Branch: 535}, true},
		{"nvidia-container-toolkit", "1.20.0-1", InstalledPart{}, false},
		{"libnvidia-container1", "1.20.0-1", InstalledPart{}, false},
		{"nvidia-cuda-toolkit", "12.0.140~12.0.1-4build4", InstalledPart{}, false},
		{"libnvidia-egl-wayland1", "1:1.1.13-1build1", InstalledPart{}, false},
		{"cuda-toolkit-12-9", "12.9.1-1", InstalledPart{}, false},
		{"datacenter-gpu-manager", "1:3.3.9", InstalledPart{}, false},
	} {
		got, ok := LookupDriverPart(c.name, c.version)
		if got != c.want || ok != c.part {
			t.Errorf("%s %s: %+v, %v", c.name, c.version, got, ok)
		}
	}
}
