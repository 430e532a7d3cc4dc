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

// A cluster keeps what it was made with. Where the inventory does not say it, what runs counts, whatever the default is; where it
// says something else, nothing is planned: a half of the change would be made, or nothing of it.

// settle makes the inventory that everything is planned by. What was made by hand has to fit what the file says.
func (s *Set) settle() {
	settled := *s.Inventory
	if s.Versions.Known() {
		settled.Kubernetes.Version = s.Versions.Running
	}
	if s.Made() {
		if m := s.controlPlaneVerdict(s.First).Membership; m != Rejoin {
			s.settleFixed(&settled, func(key string) bool { return m == Member || s.Asked.At(key) == "" })
		}
	}
	s.Inventory = &settled
}

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

// RuntimeOf is the container runtime of a node; empty: nobody knows, or kgpu does not know it.
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

// RunningNetwork is the pod network that the cluster has, and its sign: a workload, or the file by which runtimes find it. It is None
// for one that its owner brought, and empty where there is no sign of another than the inventory's.
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
	if files := ConflictingCNI(want, s.First.Facts.PodNetwork); len(files) > 0 {
		for n, names := range OwnCNI {
			if !s.Answers() && slices.Contains(names, path.Base(files[0])) {
				return n, files[0] // there may be its workload
			}
		}
		return inventory.None, files[0]
	}
	return "", ""
}

// hasControlPlaneOf reports whether one of the hosts is the control plane of the cluster with this CA.
func (s *Set) hasControlPlaneOf(ca string) bool {
	return slices.ContainsFunc(s.Machines, func(m *Machine) bool { return m.Facts.ControlPlane != nil && m.Facts.ControlPlane.CAHash == ca })
}

// placeOfRole is where the file says what the host is to be, or names the host.
func (s *Set) placeOfRole(m *Machine) string {
	key := m.Path("role")
	return cmp.Or(s.Asked.At(key), s.Asked.At(m.Path("address"))) + ": " + key
}
