package catalog

import "testing"

func TestSplitKernel(t *testing.T) {
	for release, want := range map[string][2]string{
		"6.8.0-146-generic":           {"6.8.0-146", "generic"},
		"6.8.0-146-generic-64k":       {"6.8.0-146", "generic-64k"},
		"7.0.0-1018-nvidia-64k":       {"7.0.0-1018", "nvidia-64k"},
		"6.8.0-1021-aws":              {"6.8.0-1021", "aws"},
		"6.8.0-1021-azure-fde":        {"6.8.0-1021", "azure-fde"},
		"6.8.0-45-lowlatency-64k":     {"6.8.0-45", "lowlatency-64k"},
		"6.1.0-18-amd64":              {"6.1.0-18", "amd64"},
		"6.12.41+deb13-amd64":         {"6.12.41+deb13", "amd64"},
		"6.12.41+deb13-cloud-amd64":   {"6.12.41+deb13", "cloud-amd64"},
		"6.1.0-0.deb11.5-cloud-arm64": {"6.1.0-0.deb11.5", "cloud-arm64"},
		"6.12.9":                      {"6.12.9", ""},
		"":                            {"", ""},
		"mine":                        {"", "mine"},
	} {
		if version, line := SplitKernel(release); version != want[0] || line != want[1] {
			t.Errorf("%s is %q of the line %q, want %q", release, version, line, want)
		}
	}
}

func TestDistributionKernel(t *testing.T) {
	for _, c := range []struct {
		distribution, release, version string // of its package; empty: there is none
		byName, byPackage              bool
	}{
		{"ubuntu", "6.8.0-90-generic", "6.8.0-90.91", true, true},
		{"ubuntu", "6.8.0-45-generic-64k", "6.8.0-45.45", true, true},
		{"ubuntu", "6.8.0-1029-aws", "6.8.0-1029.31", true, true},
		{"ubuntu", "6.11.0-26-generic", "6.11.0-26.26~24.04.1", true, true},
		{"ubuntu", "6.11.0-061100-generic", "6.11.0-061100.202409151536", false, false},
		{"ubuntu", "6.12.9-x64v3-xanmod1", "6.12.9-x64v3-xanmod1-0~20250110.g5d8a0c8", false, false},
		{"ubuntu", "6.12.9-1-liquorix-amd64", "6.12-9ubuntu1~noble", false, false},
		{"ubuntu", "6.12.0-1-liquorix-amd64", "6.12-1ubuntu1~noble", false, false},
		{"ubuntu", "6.12.9-zabbly+", "6.12.9-amd64-202501", false, false},
		{"ubuntu", "6.12.9-custom", "6.12.9-1", false, false},
		{"ubuntu", "6.12.9", "", false, false},
		{"ubuntu", "6.1.0-37-amd64", "", true, false},
		{"ubuntu", "5.15.167.4-microsoft-standard-WSL2", "", false, false},
		{"debian", "6.1.0-37-amd64", "6.1.140-1", true, true},
		{"debian", "6.12.41+deb13-cloud-amd64", "6.12.41-1", true, true},
		{"debian", "6.12.41+deb13-arm64-16k", "6.12.41-1", true, true},
		{"debian", "6.12.12+bpo-amd64", "6.12.12-1~bpo12+1", true, true},
		{"debian", "6.1.0-0.deb11.7-rt-amd64", "6.1.20-2~bpo11+1", true, true},
		{"debian", "6.8.12-4-pve", "", false, false},
		{"debian", "6.14.8-2-bpo12-pve", "", false, false},
		{"debian", "6.12.9-1-liquorix-amd64", "6.12-9.1~bookworm", false, false},
		{"debian", "6.12.9-x64v3-xanmod1", "6.12.9-x64v3-xanmod1-0~20250110.g5d8a0c8", false, false},
	} {
		if got := DistributionKernel(c.release); got != c.byName {
			t.Errorf("%s %s by its name: %v", c.distribution, c.release, got)
		}
		if got := KernelPackageOf(c.distribution, c.release, c.version); got != c.byPackage {
			t.Errorf("%s %s by version %q of its package: %v", c.distribution, c.release, c.version, got)
		}
	}
}
