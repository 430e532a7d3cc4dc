package bootstrap

import (
	"context"
	"os"
	"slices"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

// AddWorker adds hosts to the inventory file and makes them nodes. Only the control plane and the new hosts are contacted.
// An address that the file has already is no error: the command may be repeated.
func AddWorker(ctx context.Context, o Options, addresses []string, show func(*plan.Graph) error) error {
	data, err := os.ReadFile(o.Inventory.Path)
	if err != nil {
		return err
	}
	if addresses, err = expand(addresses); err != nil {
		return err
	}
	var added []inventory.NewHost
	for _, a := range addresses {
		if !slices.ContainsFunc(o.Inventory.Hosts, func(h inventory.Host) bool { return h.Address == a }) {
			added = append(added, inventory.NewHost{Address: a})
		}
	}
	edited, err := inventory.AddHosts(data, added)
	if err != nil {
		return err
	}
	inv, err := inventory.Decode(o.Inventory.Path, edited, inventory.Options{})
	if err != nil {
		return err
	}
	o.Inventory, o.Limit = inv, addresses
	hosts, err := o.selected()
	if err != nil {
		return err
	}
	// The file is written once the hosts have been reached and judged, and before anything on them changes.
	return converge(ctx, o, hosts, show, func() error {
		if len(added) == 0 {
			return nil
		}
		return inventory.WriteFile(o.Inventory.Path, edited)
	})
}

// expand writes ranges such as 10.0.0.[11-14] out.
func expand(addresses []string) ([]string, error) {
	var out []string
	for _, a := range addresses {
		list, err := inventory.ExpandRange(a)
		if err != nil {
			return nil, &UsageError{err.Error()}
		}
		out = append(out, list...)
	}
	return out, nil
}
