package prepare

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// names lists every host that the lab's internet answers for: sites, the tester's sites, registries.
func (p *preparer) names(context.Context) error {
	names, err := (store.Store{Dir: p.Registry()}).Hosts()
	if err != nil {
		return err
	}
	for _, sites := range []string{filepath.Join(p.Cache, "www"), filepath.Join(p.Extra, "www")} {
		hosts, err := os.ReadDir(sites)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, h := range hosts {
			if h.IsDir() {
				names = append(names, h.Name())
			}
		}
	}
	slices.Sort(names)
	return writeFile(p.Names(), []byte(strings.Join(slices.Compact(names), "\n")+"\n"), 0o644)
}
