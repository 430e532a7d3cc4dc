package machine

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// KeepalivedConf is the file by which keepalived gives the virtual address to a control plane that works.
const KeepalivedConf = "/etc/keepalived/keepalived.conf"

// RouterID is the VRRP router ID of a cluster: 1 to 255, and another one for another cluster or address, as far as that goes. All
// routers on a network segment that are not for the same address need different ones.
func RouterID(inv *inventory.Inventory) int {
	sum := sha256.Sum256([]byte(inv.Cluster + "\n" + inv.Kubernetes.VirtualIP.String()))
	return 1 + (int(sum[0])<<8|int(sum[1]))%255
}

// Beside returns the address of the machine in whose subnet another address is, its node address if possible. It is false if
// there is none.
func (m Machine) Beside(other netip.Addr) (facts.Address, bool) {
	node := m.NodeAddress()
	in := func(a facts.Address) bool { return a.Prefix.Addr() != other && a.Prefix.Contains(other) }
	for _, is := range []func(facts.Address) bool{func(a facts.Address) bool { return a.Prefix.Addr() == node }, func(facts.Address) bool { return true }} {
		if i := slices.IndexFunc(m.Facts.Addresses, func(a facts.Address) bool { return in(a) && is(a) }); i >= 0 {
			return m.Facts.Addresses[i], true
		}
	}
	return facts.Address{}, false
}

// KeepsVirtualIP reports whether kgpu has set keepalived up on one of the machines: what answers at the virtual address may be one
// of these.
func (s *Set) KeepsVirtualIP() bool {
	return slices.ContainsFunc(s.planes, func(m *Machine) bool { return m.Facts.Files[KeepalivedConf] != "" })
}

// RunningVirtualIP is the virtual address of a cluster that has one: a control plane finds the API server there, by its name. It is
// zero where none does, or does not yet: the name leads to the only control plane then.
func (s *Set) RunningVirtualIP() netip.Addr {
	if !s.KeepsVirtualIP() {
		return netip.Addr{}
	}
	for _, p := range s.planes {
		for _, to := range p.Facts.Names[s.APIName()] {
			if !slices.ContainsFunc(s.planes, func(m *Machine) bool { return m.NodeAddress() == to }) {
				return to
			}
		}
	}
	return netip.Addr{}
}

// HasAnotherVirtualIP reports whether the cluster has another virtual address than the inventory's.
func (s *Set) HasAnotherVirtualIP() bool {
	has := s.RunningVirtualIP()
	return has.IsValid() && has != s.Inventory.Kubernetes.VirtualIP
}

// ServesVirtualIP reports whether it is the inventory's virtual address for which kgpu has set keepalived up, and not another one.
func (s *Set) ServesVirtualIP() bool { return s.KeepsVirtualIP() && !s.HasAnotherVirtualIP() }
