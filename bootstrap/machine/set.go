package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Set is all machines of a cluster that told what they are: what they are together.
type Set struct {
	Inventory *inventory.Inventory // settled: with what the cluster runs, if there is one
	Asked     *inventory.Inventory // as the file has it
	Versions  Versions
	Minor     catalog.Minor // of the settled inventory; zero where the catalog does not have it
	Machines  []*Machine    // in the inventory's order
	First     *Machine      // the control plane that runs kubeadm init; nil: none has told
	Admin     *Machine      // the control plane on which kubectl runs; nil as the first
	Cluster   facts.Cluster // as the admin's API server says; empty where it does not answer
	Adopt     bool          // what was made by hand is taken over

	planes   []*Machine         // all control planes
	verdicts map[string]Verdict // by host ID; nil: not judged yet
}

// SetOf judges the hosts of the inventory that have facts, which are by host ID.
func SetOf(inv *inventory.Inventory, seen map[string]*facts.Host) *Set {
	s := &Set{Inventory: inv, Asked: inv}
	first, admin := FirstPlane(inv, seen).ID(), AdminPlane(inv, seen).ID()
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
		if m.ID() == first {
			s.First = m
		}
		if m.ID() == admin {
			s.Admin = m
		}
	}
	if c := ClusterOf(inv, seen); c != nil {
		s.Cluster = *c
	}
	s.Versions = s.findVersions()
	s.settle()
	s.Minor, _ = catalog.Kubernetes(s.Inventory.Kubernetes.Version.Minor)
	return s
}

// Made reports whether there is a cluster, which may be half made, or not answer.
func (s *Set) Made() bool { return s.First != nil && s.First.Facts.ControlPlane != nil }

// Answers reports whether an API server of the cluster did when its facts were gathered.
func (s *Set) Answers() bool { return s.Admin != nil && s.Admin.Facts.Cluster != nil }

// NodeOf is the machine's node object; nil: there is none, or it is of a former life and goes.
func (s *Set) NodeOf(m *Machine) *facts.Node {
	name := m.NodeName()
	i := slices.IndexFunc(s.Cluster.Nodes, func(n facts.Node) bool { return n.Name == name })
	if i < 0 || s.verdicts[m.ID()].Replaces {
		return nil
	}
	return &s.Cluster.Nodes[i]
}
