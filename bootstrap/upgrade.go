package bootstrap

import (
	"context"
	"os"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Upgrade writes a version of Kubernetes into the inventory file and brings the cluster there, as Up does. The file is written when
// the plan was shown, before anything on the hosts changes.
func Upgrade(ctx context.Context, o Options, version string, show func(*graph.Graph) error) error {
	path := o.Inventory.Path
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	edited, err := inventory.SetVersion(data, version)
	if err != nil {
		return err
	}
	if err := atomicfile.Writable(path); err != nil {
		return reason.Usagef("the version cannot be written into the file: %v", err)
	}
	if o.Inventory, err = inventory.DecodeEdited(path, data, edited); err != nil {
		return err
	}
	hosts, err := o.Selected()
	if err != nil {
		return err
	}
	return o.AdviseWithout(hosts, converge(ctx, o, hosts, show, func(map[string]*facts.Host) error { return rewrite(path, data, edited) }))
}
