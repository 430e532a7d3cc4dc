package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// unfitControlPlane lists why a control plane that was made by hand cannot be adopted. kgpu cannot change any of
// these settings of an existing control plane.
func (s *Set) unfitControlPlane(m *Machine) []string {
	c, k := m.Facts.ControlPlane, s.Inventory.Kubernetes
	var unfit []string
	differs := func(what, have, want string) {
		if have = cmp.Or(have, "unknown"); have != want {
			unfit = append(unfit, fmt.Sprintf("its %s is %s, the inventory's %s", what, have, want))
		}
	}
	differs("version", c.Version, "v"+s.Versions.Wanted.String())
	if s.Inventory.Network != inventory.None {
		differs("podCIDR", c.PodCIDR, k.PodCIDR.String())
	}
	differs("serviceCIDR", c.ServiceCIDR, k.ServiceCIDR.String())
	differs("address", c.Advertised, m.NodeAddress().String())
	if n := max(controlPlanes(s.Cluster.Nodes), len(c.EtcdMembers)); n > 1 {
		unfit = append(unfit, fmt.Sprintf("it has %d control planes", n))
	}
	if other := s.otherNetwork(m.Facts.PodNetworkFiles); other != "" {
		unfit = append(unfit, fmt.Sprintf("its pod network is another (%s), the inventory's %s", other, s.Inventory.Network))
	}
	return append(unfit, s.unfitNode(m)...)
}

// unfitNode lists why a node that was made by hand cannot be adopted.
func (s *Set) unfitNode(m *Machine) []string {
	node := s.NodeOf(m)
	if node == nil {
		return []string{"it has no node " + m.NodeName()}
	}
	var unfit []string
	if RuntimeOf(node) != s.Inventory.Runtime {
		unfit = append(unfit, fmt.Sprintf("its runtime is %s, the inventory's %s", node.Runtime, s.Inventory.Runtime))
	}
	if want := "v" + s.Inventory.Kubernetes.Version.String(); node.Version != want {
		unfit = append(unfit, fmt.Sprintf("its kubelet is %s, its cluster's version %s", node.Version, want))
	}
	return unfit
}

// controlPlanes counts the nodes that kubeadm made control planes.
func controlPlanes(nodes []facts.Node) (n int) {
	for _, node := range nodes {
		_, old := node.Labels["node-role.kubernetes.io/master"]
		if _, ok := node.Labels["node-role.kubernetes.io/control-plane"]; ok || old {
			n++
		}
	}
	return n
}

// otherNetwork names the workload or the CNI configuration of a pod network other than the inventory's. It is empty
// if there is none.
func (s *Set) otherNetwork(configurations []string) string {
	if s.Inventory.Network == inventory.None {
		return ""
	}
	for _, network := range slices.Sorted(maps.Keys(NetworkWorkload)) {
		if w := NetworkWorkload[network]; network != s.Inventory.Network {
			if _, ok := s.Cluster.Workloads[w]; ok {
				return w
			}
		}
	}
	if other := ConflictingCNI(s.Inventory.Network, configurations); len(other) > 0 {
		return strings.Join(other, ", ")
	}
	return ""
}

// describeCluster summarizes the cluster on a control plane's host for a person who has to decide about it.
func describeCluster(f *facts.Host) string {
	c := f.ControlPlane
	var parts []string
	if f.Kubelet != nil {
		parts = append(parts, "API server "+f.Kubelet.Server)
	}
	parts = append(parts, "CA "+shortHash(c.CAHash))
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

// describeEtcd summarizes the etcd data on a host and lists the kubeadm files beside it.
func describeEtcd(f *facts.Host) string {
	parts := []string{"last written " + age(f.Now.Sub(f.Etcd.Changed)) + " ago"}
	if f.Etcd.KiB > 0 {
		parts = slices.Insert(parts, 0, fmt.Sprintf("%d MiB", (f.Etcd.KiB+1023)/1024))
	}
	return strings.Join(slices.Concat(parts, f.KubeadmFiles), ", ")
}

// shortHash shortens a hash to 12 characters.
func shortHash(hash string) string {
	return cmp.Or(hash[:min(len(hash), 12)], "unknown")
}

// age prints a duration in days, hours or minutes.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return plural.Of(max(int(d.Minutes()), 0), "minute")
}
