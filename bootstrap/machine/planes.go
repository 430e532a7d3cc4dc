package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// FirstPlane is the control plane that runs kubeadm init, or did: of those with facts one that kgpu made the cluster on, else one
// that has a cluster, else one on which init was begun, else the first of the file. Without facts, it is the first of the file;
// an inventory without control planes has none, which is no host.
func FirstPlane(inv *inventory.Inventory, seen map[string]*facts.Host) inventory.Host {
	planes := inv.ControlPlanes()
	began := func(f *facts.Host) bool { return f.Recorded != nil && (f.Recorded.Init || f.Recorded.Adopted) }
	for _, is := range []func(*facts.Host) bool{
		func(f *facts.Host) bool { return f.ControlPlane != nil && began(f) },
		func(f *facts.Host) bool { return f.ControlPlane != nil },
		began,
		func(*facts.Host) bool { return true },
	} {
		if i := slices.IndexFunc(planes, func(h inventory.Host) bool { return seen[h.ID()] != nil && is(seen[h.ID()]) }); i >= 0 {
			return planes[i]
		}
	}
	if len(planes) == 0 {
		return inventory.Host{}
	}
	return planes[0]
}

// AdminPlane is the control plane on which kubectl runs: one whose API server answers, the first if it can be. Where none does, it
// is the first.
func AdminPlane(inv *inventory.Inventory, seen map[string]*facts.Host) inventory.Host {
	answers := func(h inventory.Host) bool { return seen[h.ID()] != nil && seen[h.ID()].Cluster != nil }
	first := FirstPlane(inv, seen)
	planes := inv.ControlPlanes()
	if i := slices.IndexFunc(planes, answers); i >= 0 && !answers(first) {
		return planes[i]
	}
	return first
}

// ClusterOf is what the cluster looks like; nil: no API server has told.
func ClusterOf(inv *inventory.Inventory, seen map[string]*facts.Host) *facts.Cluster {
	if f := seen[AdminPlane(inv, seen).ID()]; f != nil {
		return f.Cluster
	}
	return nil
}
