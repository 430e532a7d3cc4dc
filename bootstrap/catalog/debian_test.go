package catalog

import (
	"os/exec"
	"testing"
)

// dpkg is who says.
func TestCompareDebianAsDpkg(t *testing.T) {
	t.Parallel()
	versions := []string{
		"1.20.0-1", "1.20.0-1ubuntu1", "1.20.0+ds-1", "1.20.0~rc.2-1", "1.20.0", "1.9.0-1", "1:0.1-1", "1.36.3-1.1", "1.36.3-00", "1.36.10-1.1", "1.36.3-2.1",
		"1.20.0-01", "1.20.0-1~bpo12+1", "2.0", "1.20-0-1", "a", "1.0a", "1.0+", "1.0",
	}
	for _, a := range versions {
		for _, b := range versions {
			want := map[string]int{}
			for _, op := range []string{"lt", "gt"} {
				if exec.Command("dpkg", "--compare-versions", a, op, b).Run() == nil {
					want[op] = 1
				}
			}
			if got := CompareDebian(a, b); got != want["gt"]-want["lt"] {
				t.Errorf("%s and %s: %d, dpkg says %d", a, b, got, want["gt"]-want["lt"])
			}
		}
	}
}
