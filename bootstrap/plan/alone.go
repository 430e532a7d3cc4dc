package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// What kubeadm puts on control planes to keep pods and load balancers away; the older name of the taint until 1.24.
// Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/create-cluster-kubeadm/#control-plane-node-isolation.
var controlPlaneTaints = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

const noLoadBalancer = "node.kubernetes.io/exclude-from-external-load-balancers"

// opened are the lines for cluster-nodes that open control planes for pods which are the whole cluster, unless the inventory has
// their taint.
func (b *builder) opened() (want []string) {
	if len(b.Inventory.Hosts) > len(b.Inventory.ControlPlanes()) || b.hasOtherNodes() {
		return nil
	}
	for _, h := range b.planes {
		if !keepsTaint(h.Host) && !h.waits {
			want = append(want, b.open(h)...)
		}
	}
	return want
}

// open are the lines that open one.
func (b *builder) open(h *host) (want []string) {
	node := b.NodeOf(h.Machine)
	for _, key := range controlPlaneTaints {
		if node == nil || isTainted(node, key) {
			want = append(want, fmt.Sprintf("%s\tuntaint\t%s", h.node, key))
		}
	}
	_, wanted := h.Labels[noLoadBalancer]
	if _, there := machine.LabelOf(node, noLoadBalancer); !wanted && (there || node == nil) {
		want = append(want, fmt.Sprintf("%s\tlabel\t%s-", h.node, noLoadBalancer))
	}
	return want
}

// staysOpen tells who adds workers that the control plane goes on taking pods: kgpu ends nobody's place to run.
func (b *builder) staysOpen(joining []*host) {
	if len(joining) == 0 {
		return
	}
	for _, h := range b.planes {
		node := b.NodeOf(h.Machine)
		if node == nil || keepsTaint(h.Host) || slices.ContainsFunc(controlPlaneTaints, func(key string) bool { return isTainted(node, key) }) {
			continue
		}
		b.warn("%s: the control plane goes on taking pods beside the workers: `taints: [%s:NoSchedule]` of this host in the inventory keeps new ones off it",
			h.id, controlPlaneTaints[0])
	}
}

// hasOtherNodes reports whether the cluster has nodes that are no host of the inventory.
func (b *builder) hasOtherNodes() bool {
	return slices.ContainsFunc(b.Cluster.Nodes, func(n facts.Node) bool {
		return n.Name != b.first.node && !slices.ContainsFunc(b.Inventory.ControlPlanes(), func(h inventory.Host) bool { return isNodeOf(n, h) })
	})
}

// isNodeOf reports whether a node is that of a host of the inventory, as far as that says it.
func isNodeOf(n facts.Node, h inventory.Host) bool {
	return n.Name == h.Name || n.InternalIP == h.Address || n.InternalIP == h.PrivateAddress.String()
}

// keepsTaint reports whether the inventory wants a control plane's taint on the host.
func keepsTaint(h inventory.Host) bool {
	return slices.ContainsFunc(h.Taints, func(t inventory.Taint) bool { return slices.Contains(controlPlaneTaints, t.Key) })
}

func isTainted(n *facts.Node, key string) bool {
	return slices.ContainsFunc(n.Taints, func(t string) bool { return strings.HasPrefix(t, key+"=") || strings.HasPrefix(t, key+":") })
}
