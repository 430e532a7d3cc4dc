package records

import (
	"path/filepath"
	"slices"

	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/inventory"
)

// Begin begins the record of a run of an inventory. What about says of the inventory is filled in here.
func Begin(inv *inventory.Inventory, about history.Result, warn func(error)) (*history.Recorder, error) {
	root, err := history.Root()
	if err != nil {
		return nil, err
	}
	about.Cluster, about.Inventory = inv.Cluster, pathOf(inv)
	return history.Begin(root, about, warn), nil
}

// Used reports whether a run of an inventory is recorded.
func Used(inv *inventory.Inventory) bool {
	runs, _ := list(inv.Cluster)
	path := pathOf(inv)
	return slices.ContainsFunc(runs, func(r history.Run) bool { return r.Inventory == path })
}

// pathOf is how records name an inventory.
func pathOf(inv *inventory.Inventory) string {
	if path, err := filepath.Abs(inv.Path); err == nil {
		return path
	}
	return inv.Path
}
