package bootstrap

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/support"
	"kgpu.dev/kgpu/inventory"
)

// What a bundle takes of what runs left on this machine.
const (
	supportRuns      = 3        // the newest one, and the newest ones in which steps began
	supportRunsBytes = 16 << 20 // all their files together
)

// addRuns puts what the last runs left on this machine into the bundle, and says what that is. What cannot be read is said,
// too, and stops nothing.
func addRuns(inv *inventory.Inventory, bundle *support.Bundle) (about string, err error) {
	root, err := history.Root()
	if err != nil {
		return "runs: " + err.Error() + "\n", nil
	}
	runs, err := history.List(root, inv.Cluster)
	if err != nil {
		return "runs: " + err.Error() + "\n", nil
	}
	runs = slices.DeleteFunc(runs, func(r history.Run) bool { return ofAnother(r, inv) })
	if len(runs) == 0 {
		return "runs: none is recorded on this machine\n", nil
	}
	runs = slices.Concat(runs[:1], slices.DeleteFunc(runs[1:], func(r history.Run) bool { return !r.Stepped() }))
	var b strings.Builder
	room := supportRunsBytes
	for _, r := range runs[:min(len(runs), supportRuns)] {
		name := filepath.Base(r.Folder)
		entries, left := support.ReadFolder(r.Folder, &room)
		fmt.Fprintf(&b, "run %s: %s, %s: %s\n", name, r.Command, r.State, plural.Of(len(entries), "file"))
		for _, what := range left {
			fmt.Fprintf(&b, "  %s\n", what)
		}
		for _, e := range entries {
			if err := bundle.Add(path.Join("runs", support.Folder(name), e.Name), e.Content); err != nil {
				return "", fmt.Errorf("writing the bundle: %w", err)
			}
		}
	}
	return b.String(), nil
}

// ofAnother reports whether a run was of another inventory whose cluster has the same name.
func ofAnother(r history.Run, inv *inventory.Inventory) bool {
	was, err := os.Stat(r.Inventory)
	if err != nil { // it is not known, or was moved
		return false
	}
	is, err := os.Stat(inv.Path)
	return err == nil && !os.SameFile(was, is)
}
