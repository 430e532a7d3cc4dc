package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// FirstPlane is the control plane on which kubeadm init runs or ran: of those with facts the one on which kgpu made
// the cluster, else one that has a cluster, else one on which init was begun, else the first of the inventory. It is
// a zero Host if the inventory has no control plane.
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

// AdminPlane is the control plane on which kubectl runs: FirstPlane, or if its API server does not answer, one whose
// does.
func AdminPlane(inv *inventory.Inventory, seen map[string]*facts.Host) inventory.Host {
	answers := func(h inventory.Host) bool { return seen[h.ID()] != nil && seen[h.ID()].Cluster != nil }
	first := FirstPlane(inv, seen)
	planes := inv.ControlPlanes()
	if i := slices.IndexFunc(planes, answers); i >= 0 && !answers(first) {
		return planes[i]
	}
	return first
}

// ClusterOf is the state of the cluster as the admin plane's API server gave it; nil if it did not answer.
func ClusterOf(inv *inventory.Inventory, seen map[string]*facts.Host) *facts.Cluster {
	if f := seen[AdminPlane(inv, seen).ID()]; f != nil {
		return f.Cluster
	}
	return nil
}
