package plan

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// roles finds the control planes among the hosts, and what they tell of their cluster.
func (b *builder) roles(seen map[string]*facts.Host) {
	first, admin := machine.FirstPlane(b.inv, seen).ID(), machine.AdminPlane(b.inv, seen).ID()
	for _, h := range b.hosts {
		if !h.IsControlPlane() {
			continue
		}
		b.planes = append(b.planes, h)
		if h.id == first {
			b.first = h
		}
		if h.id == admin {
			b.admin = h
		}
	}
	if c := machine.ClusterOf(b.inv, seen); c != nil {
		b.cluster = *c
	}
}

// made reports whether there is a cluster, which may be half made, or not answer.
func (b *builder) made() bool { return b.first != nil && b.first.Facts.ControlPlane != nil }

// answers reports whether an API server of the cluster did when its facts were gathered.
func (b *builder) answers() bool { return b.admin != nil && b.admin.Facts.Cluster != nil }

// members are the hosts that are nodes when the plan is carried out: kgpu has no step yet with which another control plane than
// the first joins.
func (b *builder) members() []*host {
	return slices.DeleteFunc(slices.Clone(b.hosts), func(h *host) bool { return h.IsControlPlane() && h != b.first && !h.Member() })
}

// onCluster appends a step that runs kubectl.
func (b *builder) onCluster(s graph.Step) graph.Ref { return b.side(b.admin, s) }
