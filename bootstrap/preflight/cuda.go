package preflight

import (
	"errors"
	"strings"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// cuda refuses a toolkit that a host with cards cannot run or has no room for.
func (c *checker) cuda(m Machine) {
	if len(plan.Cards(c.inv, m.Facts)) == 0 {
		return
	}
	driver, err := plan.ChooseDriver(c.inv, m.Facts)
	if err != nil {
		return // that is said by cards
	}
	toolkit, err := plan.ChooseCUDA(c.inv, m.Facts, driver)
	var refused *plan.Refused
	if errors.As(err, &refused) {
		c.problem(m.ID(), refusals[refused.Kind], "%s", refused.Detail)
		return
	}
	missing, download, disk := toolkit.Missing(m.Facts)
	need := map[string]int{"/": disk}
	need[mountOf(m, "/var/cache/apt")] += download
	for _, mount := range m.Facts.Mounts {
		if have := int(mount.AvailableKiB * 1024 / 1_000_000); have < need[mount.Path] {
			c.problem(m.ID(), reason.HostDiskFull, "%s has %d MB free, %d are needed for %s; `gpu: {cuda: none}` does without",
				mount.Path, have, need[mount.Path], strings.Join(missing, " and "))
		}
	}
}

// mountOf is where the file system is mounted that holds the path.
func mountOf(m Machine, path string) string {
	best := "/"
	for _, mount := range m.Facts.Mounts {
		if len(mount.Path) > len(best) && strings.HasPrefix(path, mount.Path+"/") {
			best = mount.Path
		}
	}
	return best
}
