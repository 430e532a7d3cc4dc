package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Set is all machines of a cluster that have facts, judged together.
type Set struct {
	Inventory *inventory.Inventory // with the existing cluster's settings where those count, see settle
	Asked     *inventory.Inventory // as the file has it
	Versions  Versions
	Target    inventory.Version // to which the upgrade that is planned brings the cluster; zero if there is none, see Retarget
	Minor     catalog.Minor     // of Inventory's version; zero if the catalog does not have it
	Machines  []*Machine        // in the inventory's order
	First     *Machine          // the control plane that runs kubeadm init; nil if it has no facts
	Admin     *Machine          // the control plane on which kubectl runs; nil if it has no facts
	Cluster   facts.Cluster     // as Admin's API server says; empty if it does not answer
	Adopt     bool              // memberships that were made by hand are adopted

	// Restores is the host:port by which nodes reach the API server of the cluster that is being restored; empty: none is. Workers know it
	// by that, whatever address it has now.
	Restores string

	planes   []*Machine         // all control planes
	verdicts map[string]Verdict // by host ID; nil before Judge
}

// SetOf makes a Set of the inventory's hosts that have facts, which are by host ID.
func SetOf(inv *inventory.Inventory, seen map[string]*facts.Host) *Set {
	s := &Set{Inventory: inv, Asked: inv}
	in := planesThatStay(inv, seen)
	first := firstPlane(inv, in)
	admin := adminPlane(in, first)
	for _, entry := range inv.Hosts {
		f := seen[entry.ID()]
		if f == nil {
			continue
		}
		m := &Machine{Host: entry, Facts: f}
		s.Machines = append(s.Machines, m)
		if !m.IsControlPlane() {
			continue
		}
		s.planes = append(s.planes, m)
		if m.ID() == first.ID() {
			s.First = m
		}
		if m.ID() == admin.ID() {
			s.Admin = m
		}
	}
	if s.APIAnswers() {
		s.Cluster = *s.Admin.Facts.Cluster
	}
	s.Versions = s.findVersions()
	s.settle()
	s.Minor, _ = catalog.Kubernetes(s.Inventory.Kubernetes.Version.Minor)
	return s
}

// ClusterExists reports whether the cluster exists, even if it is half made or does not answer.
func (s *Set) ClusterExists() bool { return s.First != nil && s.First.Facts.ControlPlane != nil }

// APIAnswers reports whether an API server of the cluster answered when the facts were gathered.
func (s *Set) APIAnswers() bool { return s.Admin != nil && s.Admin.Facts.Cluster != nil }

// NodeOf is the machine's node object; nil if there is none, or if it is to be replaced.
func (s *Set) NodeOf(m *Machine) *facts.Node {
	name := m.NodeName()
	i := slices.IndexFunc(s.Cluster.Nodes, func(n facts.Node) bool { return n.Name == name })
	if i < 0 || s.verdicts[m.ID()].Replaces {
		return nil
	}
	return &s.Cluster.Nodes[i]
}
