package preflight

import (
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// virtualIP refuses a virtual address that the control planes cannot have, or that somebody has already.
func (c *checker) virtualIP(machines []Machine) {
	v := c.inv.Kubernetes.VirtualIP
	if !v.IsValid() {
		return
	}
	keeps := c.set.KeepsVirtualIP()
	for _, m := range machines {
		if machine.HasAddress(m.Facts, v) && m.Facts.Files[machine.KeepalivedConf] == "" {
			c.problem(m.ID(), reason.VirtualIPUnfit, "kubernetes.virtualIP %s is an address of this host", v)
		}
		if !m.IsControlPlane() {
			continue
		}
		if _, ok := m.Beside(v); !ok {
			c.problem(m.ID(), reason.VirtualIPUnfit, "kubernetes.virtualIP %s is in no subnet of this control plane", v)
		}
		if m.Facts.OtherKeepalived {
			c.problem(m.ID(), reason.HostKeepalivedTaken, "%s is there, and is not kgpu's", machine.KeepalivedConf)
		}
		if told := m.VirtualIP; told != nil && !keeps {
			c.takenVirtualIP(m)
		}
	}
}

// takenVirtualIP refuses an address at which a machine answers, and a router ID that another router has.
func (c *checker) takenVirtualIP(m Machine) {
	v, id := c.inv.Kubernetes.VirtualIP, machine.RouterID(c.inv)
	if m.VirtualIP.Answers != "" {
		c.problem(m.ID(), reason.VirtualIPTaken, "a machine answers at kubernetes.virtualIP %s already, asked from here: %s", v, m.VirtualIP.Answers)
	}
	for _, r := range m.VirtualIP.Routers {
		if r.ID == id {
			c.problem(m.ID(), reason.VirtualRouterTaken, "the VRRP router %d is heard from here: %s has it, and kubernetes.virtualIP %s would be the same", id, r.Source, v)
		}
	}
}
