package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/inventory"
)

// unfitControlPlane says why a control plane that was made by hand cannot be taken over. What kgpu would have to change in
// it, kgpu has no way to change.
func (b *builder) unfitControlPlane(h *host) []string {
	c, k := h.Facts.ControlPlane, b.inv.Kubernetes
	var unfit []string
	differs := func(what, have, want string) {
		if have == "" {
			have = "unknown"
		}
		if have != want {
			unfit = append(unfit, fmt.Sprintf("its %s is %s, the inventory's %s", what, have, want))
		}
	}
	differs("version", c.Version, "v"+b.versions.Wanted.String())
	if b.inv.Network != inventory.None {
		differs("podCIDR", c.PodCIDR, k.PodCIDR.String())
	}
	differs("serviceCIDR", c.ServiceCIDR, k.ServiceCIDR.String())
	differs("address", c.Advertised, h.addr.String())
	if n := max(len(controlPlanes(b.cluster.Nodes)), len(c.EtcdMembers)); n > 1 {
		unfit = append(unfit, fmt.Sprintf("it has %d control planes", n))
	}
	if other := b.otherNetwork(h.Facts.PodNetwork); other != "" {
		unfit = append(unfit, fmt.Sprintf("its pod network is another (%s), the inventory's %s", other, b.inv.Network))
	}
	return append(unfit, b.unfitNode(h)...)
}

// unfitNode says why a node that was made by hand cannot be taken over.
func (b *builder) unfitNode(h *host) []string {
	node := b.nodeOf(h)
	if node == nil {
		return []string{"it has no node " + h.node}
	}
	var unfit []string
	if runtime, _, _ := strings.Cut(node.Runtime, ":"); runtime != string(b.inv.Runtime) {
		unfit = append(unfit, fmt.Sprintf("its runtime is %s, the inventory's %s", node.Runtime, b.inv.Runtime))
	}
	if want := "v" + b.inv.Kubernetes.Version.String(); node.Version != want {
		unfit = append(unfit, fmt.Sprintf("its kubelet is %s, its cluster's version %s", node.Version, want))
	}
	return unfit
}

func controlPlanes(nodes []facts.Node) []string {
	var names []string
	for _, n := range nodes {
		_, old := n.Labels["node-role.kubernetes.io/master"]
		if _, ok := n.Labels["node-role.kubernetes.io/control-plane"]; ok || old {
			names = append(names, n.Name)
		}
	}
	return names
}

// otherNetwork names what makes a cluster's pod network, where it is not the inventory's; empty: there is none, or it is.
func (b *builder) otherNetwork(configurations []string) string {
	if b.inv.Network == inventory.None {
		return ""
	}
	for _, network := range slices.Sorted(maps.Keys(machine.NetworkWorkload)) {
		if w := machine.NetworkWorkload[network]; network != b.inv.Network {
			if _, ok := b.cluster.Workloads[w]; ok {
				return w
			}
		}
	}
	if other := machine.ConflictingCNI(b.inv.Network, configurations); len(other) > 0 {
		return strings.Join(other, ", ")
	}
	return ""
}

// takeOver plans that a host's membership, made by hand, is kgpu's from now on. Nothing of it is changed.
func (b *builder) takeOver(h *host, s Standing) graph.Ref {
	kind := "worker"
	if h.IsControlPlane() {
		kind = "control-plane"
	}
	b.add(h, graph.Step{
		Ref: graph.Ref{ID: "cluster/adopt"}, Title: "take over the " + strings.ReplaceAll(kind, "-", " ") + " that was made by hand", Reason: s.Detail,
		Input: graph.Input{Values: map[string]string{"kind": kind, "node": h.node}},
	})
	return graph.Ref{Host: h.id, ID: "cluster/adopt"}
}

// describeCluster tells which cluster a control plane's host has, for somebody who has to decide about it.
func describeCluster(f *facts.Host) string {
	c := f.ControlPlane
	var parts []string
	if f.Kubelet != nil {
		parts = append(parts, "API server "+f.Kubelet.Server)
	}
	parts = append(parts, "CA "+brief(c.CAHash))
	if c.Version != "" {
		parts = append(parts, c.Version)
	}
	if f.Cluster != nil {
		parts = append(parts, plural.Of(len(f.Cluster.Nodes), "node"))
	}
	if !c.Since.IsZero() {
		parts = append(parts, "made "+age(f.Now.Sub(c.Since))+" ago")
	}
	return strings.Join(parts, ", ")
}

func describeEtcd(f *facts.Host) string {
	parts := []string{"last written " + age(f.Now.Sub(f.Etcd.Changed)) + " ago"}
	if f.Etcd.KiB > 0 {
		parts = slices.Insert(parts, 0, fmt.Sprintf("%d MiB", (f.Etcd.KiB+1023)/1024))
	}
	return strings.Join(slices.Concat(parts, f.KubeadmFiles), ", ")
}

// brief is a hash as people compare it.
func brief(hash string) string {
	if len(hash) > 12 {
		return hash[:12]
	}
	if hash == "" {
		return "unknown"
	}
	return hash
}

// age is a duration as people say it.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return plural.Of(max(int(d.Minutes()), 0), "minute")
}
