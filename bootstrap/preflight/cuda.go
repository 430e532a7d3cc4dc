package preflight

import (
	"errors"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// cuda refuses a CUDA toolkit that a host with GPUs cannot run or has no disk space for.
func (c *checker) cuda(m Machine) {
	if len(machine.Cards(c.inv, m.Facts)) == 0 {
		return
	}
	driver, err := machine.ChooseDriver(c.inv, m.Facts)
	if err != nil {
		return // cards reports that
	}
	toolkit, err := machine.ChooseCUDA(c.inv, m.Facts, driver)
	if refused, ok := errors.AsType[*machine.Refused](err); ok {
		c.problem(m.ID(), refusals[refused.Kind], "%s", refused.Detail)
		return
	}
	missing, download, disk := toolkit.Missing(m.Facts)
	root, _ := fileSystemOf(m.Facts, "/")
	cache, _ := fileSystemOf(m.Facts, "/var/cache/apt")
	need := map[string]int{root.On: disk}
	need[cache.On] += download
	for _, fs := range slices.CompactFunc([]facts.FileSystem{root, cache}, func(a, b facts.FileSystem) bool { return a.On == b.On }) {
		if fs.On == "" {
			continue // the host did not tell
		}
		if have := int(fs.AvailableKiB * 1024 / 1_000_000); have < need[fs.On] {
			c.problem(m.ID(), reason.HostDiskFull, "%s has %d MB free, %d are needed for %s; `gpu: {cuda: none}` does without",
				fs.On, have, need[fs.On], strings.Join(missing, " and "))
		}
	}
}
