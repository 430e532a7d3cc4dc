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
