package machine

import (
	"cmp"
	"net/netip"
	"path"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// A cluster keeps the settings that it was made with. If the inventory does not name a setting, the running cluster's
// counts, not the default. If it names another value, nothing is planned, because the change would be made partly or
// not at all.

// settle replaces the inventory by one with the settings of the existing cluster. A control plane that was made by
// hand has to match what the file says.
func (s *Set) settle() {
	settled := *s.Inventory
	if s.Versions.Known() {
		settled.Kubernetes.Version = s.Versions.Running
	}
	if s.ClusterExists() {
		if m := s.controlPlaneVerdict(s.First).Membership; m != Rejoin {
			s.settleFixed(&settled, func(key string) bool { return m == Member || s.Asked.At(key) == "" })
		}
	}
	s.Inventory = &settled
}

// settleFixed sets the keys that cannot change to the running values, if counts agrees.
func (s *Set) settleFixed(settled *inventory.Inventory, counts func(key string) bool) {
	c := s.First.Facts.ControlPlane
	if r := RuntimeOf(s.NodeOf(s.First)); r != "" && counts("runtime") {
		settled.Runtime = r
	}
	if n, _ := s.RunningNetwork(); n != "" && counts("network") {
		settled.Network = n
	}
	if p, err := netip.ParsePrefix(c.PodCIDR); err == nil && counts("kubernetes.podCIDR") {
		settled.Kubernetes.PodCIDR = p
	}
	if p, err := netip.ParsePrefix(c.ServiceCIDR); err == nil && counts("kubernetes.serviceCIDR") {
		settled.Kubernetes.ServiceCIDR = p
	}
}

// RuntimeOf is the container runtime of a node; empty if it is unknown.
func RuntimeOf(n *facts.Node) inventory.Runtime {
	if n == nil {
		return ""
	}
	name, _, _ := strings.Cut(n.Runtime, ":")
	if r := inventory.Runtime(name); r == inventory.Docker || r == inventory.Containerd {
		return r
	}
	return ""
}

// RunningNetwork is the cluster's pod network and the workload or CNI configuration that shows it. It is None for a
// network that kgpu does not install, and empty if nothing shows a network other than the inventory's.
func (s *Set) RunningNetwork() (network inventory.Network, sign string) {
	want := s.Asked.Network
	if _, ok := s.Cluster.Workloads[NetworkWorkload[want]]; ok {
		return want, NetworkWorkload[want]
	}
	for _, n := range []inventory.Network{inventory.Calico, inventory.Flannel, inventory.Weave} {
		if w, ok := s.Cluster.Workloads[NetworkWorkload[n]]; ok && (want != inventory.None || w.Hash != "") {
			return n, NetworkWorkload[n]
		}
	}
	if want == inventory.None {
		return "", ""
	}
	if files := ConflictingCNI(want, s.First.Facts.PodNetworkFiles); len(files) > 0 {
		for n, names := range OwnCNI {
			if !s.APIAnswers() && slices.Contains(names, path.Base(files[0])) {
				return n, files[0] // its workload may exist while the API server does not answer
			}
		}
		return inventory.None, files[0]
	}
	return "", ""
}

// hasControlPlaneOf reports whether one of the machines is a control plane of the cluster with this CA.
func (s *Set) hasControlPlaneOf(ca string) bool {
	return slices.ContainsFunc(s.Machines, func(m *Machine) bool { return m.Facts.ControlPlane != nil && m.Facts.ControlPlane.CAHash == ca })
}

// placeOfRole is the position in the inventory that sets the host's role, or else of the host.
func (s *Set) placeOfRole(m *Machine) string {
	key := m.Path("role")
	return cmp.Or(s.Asked.At(key), s.Asked.At(m.Path("address"))) + ": " + key
}
