package plan

import (
	"errors"
	"net/netip"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// identities refuses hosts that call themselves what they are not. What is done to a node is done on the control plane, by
// its name, and a host whose name the inventory does not give tells its name itself: it must be a name, it must be nobody
// else's, and the node that has it must be this host. Preflight finds honest mistakes before; this holds whatever is ignored.
func (b *builder) identities() error {
	var errs []error
	problem := func(h *host, id reason.ID, format string, args ...any) {
		errs = append(errs, refuse(id, h.id, format, args...))
	}
	owner := map[string]string{}
	for _, entry := range b.Inventory.Hosts {
		if entry.Name != "" {
			owner[entry.Name] = entry.ID()
		}
	}
	for _, h := range b.hosts {
		if !machine.ValidNodeName(h.node) {
			problem(h, reason.HostNameInvalid, "%q cannot be a node's name", h.node)
			continue
		}
		if other, taken := owner[h.node]; taken && other != h.id {
			problem(h, reason.HostNameDuplicate, "the host calls itself %s, which is the name of %s", h.node, other)
			continue
		}
		owner[h.node] = h.id
		node := b.NodeOf(h.Machine)
		if h.Name != "" || node == nil {
			continue
		}
		if at, err := netip.ParseAddr(node.InternalIP); err == nil && h.addr.IsValid() && at != h.addr {
			problem(h, reason.HostNameDuplicate, "the host calls itself %s and has the address %s; the node of that name has %s", h.node, h.addr, at)
		}
	}
	return errors.Join(errs...)
}
