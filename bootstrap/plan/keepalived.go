package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

const keepalivedCheck = "/etc/keepalived/kgpu-api-check"

// keepalivedProbe tells whether the API server of this host works, as that itself says: who may not ask is answered, too. The file is there
// while a step restarts it, so that another control plane has the address before.
const keepalivedProbe = `#!/bin/sh
# Written by kgpu. Tells whether the API server of this host works, and goes on to: keepalived asks each second.
if [ -e /run/kgpu-api-restarts ]; then exit 1; fi
case $(curl -sk --noproxy '*' -o /dev/null -m 1 -w '%{http_code}' https://127.0.0.1:6443/livez) in
  200 | 401 | 403) exit 0 ;;
  *) exit 1 ;;
esac
`

// keepalivedText is the configuration. All have the same priority, so that who comes back takes nothing away from who has the address.
// A check that fails costs more than the priorities can differ: where one API server fails, another host takes over; where all do,
// as etcd's majority is gone, nothing moves. Intervals below a second are VRRP version 3; switches may filter its multicast.
//
// With the same priority, two may take the address in the same millisecond, until one hears the other. Both tell the neighbours by
// gratuitous ARP, and those believe who speaks last, which can be the one that gives the address up again. So who keeps it does not speak
// five times at once, as is the default, but each 0.1 s, and again after a second instead of five. Source: keepalived.conf(5).
const keepalivedText = `# Written by kgpu: the address of the cluster's API server.
global_defs {
    vrrp_version 3
    vrrp_garp_interval 0.1
    enable_script_security
    script_user root
}

vrrp_script kgpu_api {
    script "` + keepalivedCheck + `"
    interval 1
    timeout 2
    fall 2
    rise 2
    weight -40
}

vrrp_instance kgpu_api {
    state BACKUP
    interface %s
    virtual_router_id %d
    priority 100
    advert_int 0.25
    garp_master_delay 1
%s    virtual_ipaddress {
        %s/32 dev %s
    }
    track_script {
        kgpu_api
    }
}
`

// keepalivedConf is the configuration of a control plane, which has an address beside the virtual one.
func (b *builder) keepalivedConf(h *host, at facts.Address) string {
	var unicast strings.Builder
	if peers := b.peers(h); len(peers) > 0 {
		fmt.Fprintf(&unicast, "    unicast_src_ip %s\n    unicast_peer {\n", at.Prefix.Addr())
		for _, p := range peers {
			fmt.Fprintf(&unicast, "        %s\n", p)
		}
		unicast.WriteString("    }\n")
	}
	return fmt.Sprintf(keepalivedText, at.Interface, machine.RouterID(b.Inventory), unicast.String(), b.Inventory.Kubernetes.VirtualIP, at.Interface)
}

// peers are the addresses of the other control planes, those too that cannot be asked now.
func (b *builder) peers(h *host) (out []netip.Addr) {
	for _, other := range b.Inventory.ControlPlanes() {
		if other.ID() == h.id {
			continue
		}
		if at := b.peer(other); at.IsValid() {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// peer is the address of a control plane beside the virtual one: as it tells, or as the inventory or its node says.
func (b *builder) peer(of inventory.Host) netip.Addr {
	for _, p := range b.planes {
		if at, ok := p.Beside(b.Inventory.Kubernetes.VirtualIP); ok && p.id == of.ID() {
			return at.Prefix.Addr()
		}
	}
	if of.PrivateAddress.IsValid() {
		return of.PrivateAddress
	}
	if at, err := netip.ParseAddr(of.Address); err == nil {
		return at
	}
	for _, n := range b.Cluster.Nodes {
		if at, err := netip.ParseAddr(n.InternalIP); err == nil && isNodeOf(n, of) {
			return at
		}
	}
	return netip.Addr{}
}
