package plan

import (
	"errors"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Remove plans that workers leave a cluster that goes on: their nodes are drained and deleted, and they are reset, as Reset
// does it. Of a worker without facts only the node goes. It is not drained, nor are, with force, nodes that are not ready.
// left are the steps after which a host has left, by host ID; one that has none has left already.
func Remove(inv *inventory.Inventory, seen map[string]*facts.Host, ids []string, force bool) (g *graph.Graph, left map[string][]graph.Ref, err error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, nil, err
	}
	if b.ClusterExists() && !b.APIAnswers() {
		return nil, nil, refuse(reason.APIUnreachable, b.admin.id, "the API server does not answer: no node can be deleted")
	}
	if err := b.identities(); err != nil {
		return nil, nil, err
	}
	var refused []error
	for _, h := range b.hosts {
		if !h.IsControlPlane() && slices.Contains(ids, h.id) {
			refused = append(refused, b.notOurs(h))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return nil, nil, err
	}
	left = map[string][]graph.Ref{}
	for _, entry := range inv.Hosts {
		if entry.IsControlPlane() || !slices.Contains(ids, entry.ID()) {
			continue
		}
		h, err := b.leaver(entry)
		if err != nil {
			return nil, nil, err
		}
		switch node := b.NodeOf(h.Machine); {
		case h.Facts != nil && h.Adopted():
			b.warn("%s: its node was made by hand, and stays: `kubectl delete node %s` and `kubeadm reset` are yours", h.id, h.node)
		case node != nil && h.Facts == nil:
			b.abandon(h, "its host cannot be reached") // it may have died a moment ago, and be ready still
		case node != nil && force && !node.Ready:
			b.abandon(h, "it is not ready")
		default:
			b.leave(h, drainSlowly)
		}
		if h.Facts != nil {
			b.resetHost(h, false)
		}
		left[h.id] = h.last
	}
	return &b.graph, left, b.graph.Validate()
}

// leaver is a worker that goes. One without facts has only its place in the inventory and, if there is one, its node.
func (b *builder) leaver(entry inventory.Host) (*host, error) {
	for _, h := range b.hosts {
		if h.id == entry.ID() {
			return h, nil
		}
	}
	node, err := b.absentNode(entry)
	h := &host{Machine: &machine.Machine{Host: entry}, id: entry.ID(), node: node}
	h.Name = node // it cannot be asked for it
	return h, err
}

// absentNode is the name of the node of a host that cannot be asked for it. It is the host's address, which no node has for
// its name, when the cluster has none.
func (b *builder) absentNode(entry inventory.Host) (string, error) {
	if entry.Name != "" {
		return entry.Name, nil
	}
	var nobodys []string
	for _, node := range b.Cluster.Nodes {
		owner := slices.IndexFunc(b.Inventory.Hosts, func(h inventory.Host) bool { return b.owns(h, node) })
		switch {
		case owner < 0:
			nobodys = append(nobodys, node.Name)
		case b.Inventory.Hosts[owner].ID() == entry.ID():
			return node.Name, nil
		}
	}
	if len(nobodys) > 0 {
		return "", refuse(reason.NodeUnknown, entry.ID(), "no node has the address %s, and it may be any of: %s", entry.Address, strings.Join(nobodys, ", "))
	}
	return entry.Address, nil
}

// owns reports whether a node is that of a host, as far as the inventory, or the host, tells.
func (b *builder) owns(entry inventory.Host, node facts.Node) bool {
	if i := slices.IndexFunc(b.hosts, func(h *host) bool { return h.id == entry.ID() }); i >= 0 {
		return b.hosts[i].node == node.Name
	}
	if entry.Name != "" {
		return entry.Name == node.Name
	}
	return node.InternalIP != "" && (node.InternalIP == entry.Address || entry.PrivateAddress.IsValid() && node.InternalIP == entry.PrivateAddress.String())
}

// abandon deletes a node without waiting for its pods, whose end nobody would tell. The cluster forgets them with the node,
// and a kubelet that lives ends them then.
func (b *builder) abandon(h *host, why string) {
	step := deletion(h, "it leaves the cluster, and "+why+": its pods are not waited for", h.last)
	step.Drains = h.node
	h.last = append(slices.Clone(h.last), b.onCluster(step))
}
