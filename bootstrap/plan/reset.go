package plan

import (
	"fmt"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Reset plans the way back for the named hosts (none: all of the inventory). A worker that leaves a cluster that goes on
// is drained and its node deleted first; when the whole cluster goes there is nowhere to drain to.
func Reset(inv *inventory.Inventory, seen map[string]*facts.Host, only []string) (*Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	leaving := map[string]bool{}
	for _, id := range only {
		leaving[id] = true
	}
	all := len(only) == 0 || leaving[b.cp.id]
	if leaving[b.cp.id] && len(only) < len(inv.Hosts) {
		return nil, fmt.Errorf("%s is the control plane: without it there is no cluster; reset the whole cluster, or its workers", b.cp.id)
	}
	if !all { // nodes of a cluster that goes on are drained and deleted by their names
		if err := b.identities(); err != nil {
			return nil, err
		}
	}
	var gone []Ref
	for _, h := range b.hosts {
		if h == b.cp || !all && !leaving[h.id] {
			continue
		}
		if !all {
			b.leave(h)
		}
		gone = append(gone, b.resetHost(h)...)
	}
	if all {
		b.cp.last = gone
		b.resetHost(b.cp)
	}
	return &b.graph, b.graph.Validate()
}

// leave drains the node and deletes it, on the control plane.
func (b *builder) leave(h *host) {
	if b.nodeOf(h) == nil {
		b.skip(b.cp, "node/delete/"+h.node, "the cluster has no such node")
		return
	}
	drained := b.side(b.cp, Step{
		Ref: Ref{ID: "node/drain/" + h.node}, Title: "drain node " + h.node, Reason: "it leaves the cluster", Script: "node-drain",
		Input: Input{Values: map[string]string{"node": h.node, "timeout": "120s"}}, Timeout: medium,
	})
	deleted := b.side(b.cp, Step{
		Ref: Ref{ID: "node/delete/" + h.node}, Title: "delete node " + h.node, Reason: "it leaves the cluster", Script: "node-delete",
		Needs: []Ref{drained}, Input: Input{Values: map[string]string{"node": h.node}}, Retry: Transient, Timeout: short,
	})
	h.last = []Ref{deleted}
}

// resetHost touches only what kgpu made: a host without a ledger may be somebody else's node.
func (b *builder) resetHost(h *host) []Ref {
	if h.facts.Ledger == 0 {
		b.skip(h, "host/reset", "kgpu has changed nothing here")
		return nil
	}
	b.add(h, Step{
		Ref: Ref{ID: "host/reset"}, Title: "kubeadm reset, then undo what kgpu changed",
		Reason: fmt.Sprintf("%d recorded changes", h.facts.Ledger), Script: "host-reset",
		Input: Input{Values: map[string]string{"criSocket": b.criSocket()}}, Timeout: long,
	})
	return h.last
}
