package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// FirstPlane is the control plane on which kubeadm init runs or ran: of those with facts the one on which kgpu made
// the cluster, else one that joined it to the end, else one that has a cluster, else one on which init was begun, else the first of the inventory. It is
// a zero Host if the inventory has no control plane.
func FirstPlane(inv *inventory.Inventory, seen map[string]*facts.Host) inventory.Host {
	planes := inv.ControlPlanes()
	began := func(f *facts.Host) bool { return f.Recorded != nil && (f.Recorded.Init || f.Recorded.Adopted) }
	for _, is := range []func(*facts.Host) bool{
		func(f *facts.Host) bool { return f.ControlPlane != nil && began(f) },
		func(f *facts.Host) bool { return f.ControlPlane != nil && f.ControlPlane.Finished },
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

// AdminPlane is the control plane on which kubectl runs: one whose API server answers, FirstPlane if possible. One that has a note of
// proofs that are owed comes before others: what makes them takes the note away. If none answers, it is FirstPlane.
func AdminPlane(inv *inventory.Inventory, seen map[string]*facts.Host) inventory.Host {
	first := FirstPlane(inv, seen)
	planes := inv.ControlPlanes()
	answers := func(h inventory.Host) bool { return seen[h.ID()] != nil && seen[h.ID()].Cluster != nil }
	for _, is := range []func(inventory.Host) bool{
		func(h inventory.Host) bool { return seen[h.ID()].Unproven || seen[h.ID()].NetworkUnproven },
		func(h inventory.Host) bool { return h.ID() == first.ID() },
		func(inventory.Host) bool { return true },
	} {
		if i := slices.IndexFunc(planes, func(h inventory.Host) bool { return answers(h) && is(h) }); i >= 0 {
			return planes[i]
		}
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
