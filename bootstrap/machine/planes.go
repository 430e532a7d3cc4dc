package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// firstPlane is the control plane on which kubeadm init runs or ran: of those that stay the one on which kgpu made the cluster, else one
// that joined it to the end, else one that has a cluster, else one on which init was begun, else the first of the inventory. It is a zero
// Host if the inventory has no control plane.
func firstPlane(inv *inventory.Inventory, in []*Machine) inventory.Host {
	began := func(f *facts.Host) bool { return f.Recorded != nil && (f.Recorded.Init || f.Recorded.Adopted) }
	for _, is := range []func(*facts.Host) bool{
		func(f *facts.Host) bool { return f.ControlPlane != nil && began(f) },
		func(f *facts.Host) bool { return f.ControlPlane != nil && f.ControlPlane.Finished },
		func(f *facts.Host) bool { return f.ControlPlane != nil },
		began,
		func(*facts.Host) bool { return true },
	} {
		if i := slices.IndexFunc(in, func(m *Machine) bool { return is(m.Facts) }); i >= 0 {
			return in[i].Host
		}
	}
	if planes := inv.ControlPlanes(); len(planes) > 0 {
		return planes[0]
	}
	return inventory.Host{}
}

// AdminPlane is the control plane on which kubectl runs: one whose API server answers, firstPlane if possible. One that has a note of
// proofs that are owed comes before others: what makes them takes the note away. If none answers, it is firstPlane.
func AdminPlane(inv *inventory.Inventory, seen map[string]*facts.Host) inventory.Host {
	in := planesThatStay(inv, seen)
	return adminPlane(in, firstPlane(inv, in))
}

// adminPlane is AdminPlane of the control planes that stay, and the first.
func adminPlane(in []*Machine, first inventory.Host) inventory.Host {
	for _, is := range []func(*Machine) bool{
		func(m *Machine) bool { return m.Facts.Unproven || m.Facts.NetworkUnproven },
		func(m *Machine) bool { return m.ID() == first.ID() },
		func(*Machine) bool { return true },
	} {
		if i := slices.IndexFunc(in, func(m *Machine) bool { return m.Facts.Cluster != nil && is(m) }); i >= 0 {
			return in[i].Host
		}
	}
	return first
}

// planesThatStay are the control planes that have facts, without those that were taken out of the cluster.
func planesThatStay(inv *inventory.Inventory, seen map[string]*facts.Host) []*Machine {
	var known []*Machine
	for _, h := range inv.ControlPlanes() {
		if f := seen[h.ID()]; f != nil {
			known = append(known, &Machine{Host: h, Facts: f})
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(m *Machine) bool { return m.takenOut(known) })
}

// takenOut reports whether a control plane was taken out of its cluster while it was away: its own API server does not answer, and the
// cluster has a node of another one and none of this. What is here then, its member of etcd with it, is of no cluster any more.
func (m *Machine) takenOut(planes []*Machine) bool {
	mine := m.Facts.ControlPlane
	if mine == nil || mine.Served != "" {
		return false
	}
	return slices.ContainsFunc(planes, func(other *Machine) bool {
		theirs := other.Facts.ControlPlane
		return theirs != nil && theirs.CAHash == mine.CAHash && (other.alone(m, m.Facts.Cluster) || other.alone(m, other.Facts.Cluster))
	})
}

// alone reports whether a cluster has a node of this machine, and none of the other.
func (m *Machine) alone(other *Machine, c *facts.Cluster) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(c.Nodes, func(n facts.Node) bool { return n.Name == name })
	}
	return c != nil && has(m.NodeName()) && !has(other.NodeName())
}

// TakenOut reports whether a control plane was taken out of the cluster while it was away.
func (s *Set) TakenOut(m *Machine) bool { return m.takenOut(s.planes) }

// ClusterOf is the state of the cluster as the admin plane's API server gave it; nil if it did not answer.
func ClusterOf(inv *inventory.Inventory, seen map[string]*facts.Host) *facts.Cluster {
	if f := seen[AdminPlane(inv, seen).ID()]; f != nil {
		return f.Cluster
	}
	return nil
}
