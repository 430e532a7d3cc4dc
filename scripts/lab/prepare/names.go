package prepare

import (
	"context"
	"errors"
	"fmt"
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
	list := strings.Join(slices.Compact(names), "\n") + "\n"
	if have, err := os.ReadFile(p.Names()); err == nil && string(have) == list {
		return nil
	}
	if p.lookOnly {
		return fmt.Errorf("the list of names: %w", errStale)
	}
	return writeFile(p.Names(), []byte(list), 0o644)
}
