package plan

import (
	"fmt"
	"net/netip"
)

// defaultNodePort is the port of every node that leads to the notebook where the inventory names none.
const defaultNodePort = 30061

// nodePort is the port of every node that leads to the notebook; zero: none does, and why. The notebook speaks plain HTTP, and who
// hears its token runs what they want in its pod: without being asked kgpu does not put it on the internet.
func (b *builder) nodePort() (port int, why string) {
	if port := b.Inventory.Notebook.NodePort; port != 0 {
		return port, ""
	}
	for _, h := range b.hosts {
		if a, public := b.publicAddress(h); public {
			return 0, fmt.Sprintf("no port of the nodes leads to it, for it speaks plain HTTP and %s has the public address %s: "+
				"`kgpu notebook` goes through SSH, `notebook: {nodePort: %d}` opens one", h.id, a, defaultNodePort)
		}
	}
	return defaultNodePort, ""
}

// publicAddress is an IPv4 address of a host that is not of a private network: one of its interfaces, or the one in the inventory,
// which may be translated. The ports of nodes are IPv4's alone.
func (b *builder) publicAddress(h *host) (netip.Addr, bool) {
	all := []netip.Addr{}
	if a, err := netip.ParseAddr(h.Address); err == nil {
		all = append(all, a)
	}
	for _, a := range h.Facts.Addresses {
		all = append(all, a.Prefix.Addr())
	}
	for _, a := range all {
		ours := b.Inventory.Kubernetes.PodCIDR.Contains(a) || b.Inventory.Kubernetes.ServiceCIDR.Contains(a)
		if a.Is4() && a.IsGlobalUnicast() && !a.IsPrivate() && !carrier.Contains(a) && !ours {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// carrier is the shared address space, which nothing on the internet leads to; overlay networks such as Tailscale use it too.
// Source: RFC 6598.
var carrier = netip.MustParsePrefix("100.64.0.0/10")
