package plan

import (
	"errors"
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Reset plans the way back for the named hosts (none: all of the inventory). A worker that leaves a cluster that goes on
// is drained and its node deleted first; when the whole cluster goes there is nowhere to drain to.
func Reset(inv *inventory.Inventory, seen map[string]*facts.Host, only []string) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	leaving := map[string]bool{}
	for _, id := range only {
		leaving[id] = true
	}
	plane := slices.IndexFunc(b.planes, func(h *host) bool { return leaving[h.id] })
	all := len(only) == 0 || plane >= 0
	if plane >= 0 && len(leaving) < len(inv.Hosts) {
		return nil, fmt.Errorf("%s is a control plane: reset the whole cluster, or its workers", b.planes[plane].id)
	}
	if !all { // nodes of a cluster that goes on are drained and deleted by their names
		if err := b.identities(); err != nil {
			return nil, err
		}
	}
	goesOn := !all || b.first.Recorded().Adopted && b.ClusterExists()
	if goesOn && b.ClusterExists() && !b.APIAnswers() {
		return nil, refuse(reason.APIUnreachable, b.admin.id, "without its answer no node can be drained or deleted")
	}
	var gone []graph.Ref
	var foreign []error
	for _, h := range b.hosts {
		if all || leaving[h.id] {
			foreign = append(foreign, b.notOurs(h))
		}
	}
	if err := errors.Join(foreign...); err != nil {
		return nil, err
	}
	for _, h := range b.hosts {
		if h.IsControlPlane() || !all && !leaving[h.id] {
			continue
		}
		if goesOn && !h.Adopted() {
			b.leave(h, drainBriefly)
		}
		gone = append(gone, b.resetHost(h, false)...)
	}
	if all {
		b.resetPlanes(gone)
	}
	return &b.graph, b.graph.Validate()
}

// resetPlanes plans the end of the cluster when its workers have gone: its control planes one after the other, the first last.
func (b *builder) resetPlanes(gone []graph.Ref) {
	others := slices.DeleteFunc(slices.Clone(b.planes), func(h *host) bool { return h == b.first })
	for _, h := range append(others, b.first) {
		h.last = gone
		gone = append(slices.Clone(gone), b.resetHost(h, len(b.planes) > 1)...)
	}
}

// How long pods have to end when their node goes, as kubectl writes it. Both are less than the step's own time.
const (
	drainBriefly = "120s"
	drainSlowly  = "540s" // training that saves what it has is given the time
)

// leave drains the node and deletes it, on the control plane.
func (b *builder) leave(h *host, within string) {
	if b.NodeOf(h.Machine) == nil {
		b.skip(b.admin, "node/delete/"+h.node, "the cluster has no such node")
		return
	}
	drained := b.evict(h, "it leaves the cluster", within)
	h.last = []graph.Ref{b.onCluster(deletion(h, "it leaves the cluster", []graph.Ref{drained}))}
}

// deletion is the step that deletes a node, on the control plane.
func deletion(h *host, why string, needs []graph.Ref) graph.Step {
	return graph.Step{
		Ref: graph.Ref{ID: "node/delete/" + h.node}, Title: "delete node " + h.node, Reason: why,
		Needs: needs, Input: graph.Input{Values: map[string]string{"node": h.node}},
	}
}

// evict moves the pods away from a node that goes.
func (b *builder) evict(h *host, why, within string) graph.Ref {
	return b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "node/drain/" + h.node}, Title: "drain node " + h.node, Reason: why, Script: "node-evict", Timeout: medium, Drains: h.node,
		Needs: slices.Clone(h.last), Input: graph.Input{Values: map[string]string{"node": h.node, "timeout": within}},
	})
}

// OutputLeft is what the reset of a host could not take back, a line each.
const OutputLeft = "left"

// resetHost touches only what kgpu made: a host without a ledger may be somebody else's node. With all of its
// cluster, a control plane need not be taken out of etcd, of which too little is left in the end to agree to anything.
func (b *builder) resetHost(h *host, cluster bool) []graph.Ref {
	why := fmt.Sprintf("%d recorded changes", h.Facts.Ledger)
	switch {
	case h.Facts.Ledger > 0:
	case h.Facts.HasState:
		why = "kgpu has left notes here, and changed nothing else"
	default:
		b.skip(h, "host/reset", "kgpu has changed nothing here")
		return nil
	}
	title := "kubeadm reset, then undo what kgpu changed"
	if h.Adopted() {
		title = "undo what kgpu changed; the cluster stays: it was made by hand"
		b.warn("%s: kgpu took its cluster over and leaves it there: what kgpu applied to the cluster itself (labels, taints, workloads) stays", h.id)
	}
	values := map[string]string{"criSocket": b.criSocket()}
	if cluster {
		values["cluster"] = "gone"
	}
	b.add(h, graph.Step{
		Ref: graph.Ref{ID: "host/reset"}, Title: title,
		Reason: why,
		Input:  graph.Input{Values: values},
	})
	return h.last
}

// notOurs is the error of a host on which somebody made another cluster since kgpu did: kubeadm reset would destroy that.
func (b *builder) notOurs(h *host) error {
	remade := h.Remade()
	if remade == "" {
		return nil
	}
	return refuse(reason.HostForeignCluster, h.id, "%s: kgpu does not take it apart", remade)
}
