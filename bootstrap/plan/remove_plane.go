package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// RemovePlanes plans that control planes leave a cluster that goes on with the others, one after the other: kubeadm takes each out of
// etcd. One without facts is lost: the others take it out, before anybody else leaves. left is as that of Remove.
func RemovePlanes(inv *inventory.Inventory, seen map[string]*facts.Host, ids []string) (g *graph.Graph, left map[string][]graph.Ref, err error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, nil, err
	}
	leaves := func(h inventory.Host) bool { return slices.Contains(ids, h.ID()) }
	stay := *b.Inventory
	stay.Hosts = slices.DeleteFunc(slices.Clone(stay.Hosts), leaves)
	if err := errors.Join(b.identities(), b.refuseUnfinishedRestore(), b.refuseMoved(), b.mayLeave(&stay)); err != nil {
		return nil, nil, err
	}
	leavers := slices.DeleteFunc(slices.Clone(inv.ControlPlanes()), func(h inventory.Host) bool { return !leaves(h) })
	slices.SortStableFunc(leavers, func(x, y inventory.Host) int { return cmp.Compare(b.told(x), b.told(y)) })
	left = map[string][]graph.Ref{}
	var before []graph.Ref
	for _, entry := range leavers {
		h, err := b.leaver(entry)
		if err != nil {
			return nil, nil, err
		}
		if h.last = before; h.Facts == nil {
			if err := b.lose(h); err != nil {
				return nil, nil, err
			}
		} else if err := b.notOurs(h); err != nil {
			return nil, nil, err
		} else {
			b.leaveInTurn(h)
		}
		before, left[h.id] = h.last, h.last
	}
	b.Inventory = &stay
	for _, h := range b.planes {
		if !leaves(h.Host) {
			h.last = before
			b.keepalived(h)
		}
	}
	return &b.graph, left, b.graph.Validate()
}

// told is 1 for a host with facts, 0 for others.
func (b *builder) told(h inventory.Host) int {
	if slices.ContainsFunc(b.planes, func(p *host) bool { return p.id == h.ID() }) {
		return 1
	}
	return 0
}

// mayLeave refuses to take control planes away unless all that stay have the cluster and answer, and lets kubectl run on one of these.
func (b *builder) mayLeave(stay *inventory.Inventory) error {
	seen := map[string]*facts.Host{}
	for _, h := range b.planes {
		seen[h.id] = h.Facts
	}
	for _, h := range stay.ControlPlanes() {
		switch f := seen[h.ID()]; {
		case f == nil:
			return refuse(reason.ClusterQuorumLost, h.ID(), "this control plane stays, and cannot be reached: none leaves before it is back")
		case f.Cluster == nil || f.ControlPlane == nil || !f.ControlPlane.Finished && !b.hostOf(h.ID()).Adopted():
			return refuse(reason.APIUnreachable, h.ID(), "this control plane stays, and has no API server that answers: none leaves before it has")
		}
	}
	b.admin = b.hostOf(machine.AdminPlane(stay, seen).ID())
	return nil
}

// hostOf is the host with this ID, which has facts.
func (b *builder) hostOf(id string) *host {
	return b.hosts[slices.IndexFunc(b.hosts, func(h *host) bool { return h.id == id })]
}

// leaveInTurn plans that a control plane leaves which is there, after those before it.
func (b *builder) leaveInTurn(h *host) {
	if b.NodeOf(h.Machine) != nil {
		b.leave(h, drainSlowly)
	}
	b.resetHost(h, false)
}

// lose plans that the cluster forgets a control plane that is lost, after those before it.
func (b *builder) lose(h *host) error {
	at := h.PrivateAddress
	if parsed, err := netip.ParseAddr(h.Address); !at.IsValid() && err == nil {
		at = parsed
	}
	for _, n := range b.Cluster.Nodes {
		if parsed, err := netip.ParseAddr(n.InternalIP); err == nil && n.Name == h.node {
			at = parsed
		}
	}
	if !at.IsValid() {
		return refuse(reason.NodeUnknown, h.id, "nothing says which address it had in etcd: name it as `privateAddress` in the inventory")
	}
	removed := b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "node/etcd-remove/" + h.node}, Title: fmt.Sprintf("take %s out of etcd", h.node), Reason: "it leaves the cluster, and cannot be reached",
		Needs: h.last, Input: graph.Input{Values: map[string]string{"node": h.node, "address": at.String()}},
	})
	h.last = []graph.Ref{removed}
	if b.NodeOf(h.Machine) != nil {
		b.abandon(h, "its host cannot be reached")
	}
	return nil
}
