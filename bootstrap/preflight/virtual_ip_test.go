package preflight

import (
	"net/netip"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// TestVirtualIP: an address that the control planes cannot have, or that somebody has, is refused, until kgpu has set it up.
func TestVirtualIP(t *testing.T) {
	inv := decode(t, "kubernetes: {virtualIP: 10.0.0.100}\n")
	id := machine.RouterID(inv)
	heard := []facts.VirtualRouter{{ID: id, Source: netip.MustParseAddr("10.0.0.7")}}
	for _, c := range []struct {
		name  string
		spoil func(cp, w *Machine)
		want  []string
	}{
		{"free", func(cp, _ *Machine) {
			cp.VirtualIP = &facts.VirtualIP{Routers: []facts.VirtualRouter{{ID: id%255 + 1}}}
		}, nil},
		{"not asked", func(*Machine, *Machine) {}, nil},
		{"in no subnet", func(cp, _ *Machine) {
			cp.Facts.Addresses[0].Prefix = netip.MustParsePrefix("10.0.0.10/28")
		}, []string{"cp1 VIRTUAL_IP_UNFIT"}},
		{"a worker's own", func(_, w *Machine) {
			w.Facts.Addresses = append(w.Facts.Addresses, facts.Address{Interface: "eth1", Prefix: netip.MustParsePrefix("10.0.0.100/24")})
		}, []string{"w1 VIRTUAL_IP_UNFIT"}},
		{"somebody answers", func(cp, _ *Machine) { cp.VirtualIP = &facts.VirtualIP{Answers: "52:54:00:12:34:56"} }, []string{"cp1 VIRTUAL_IP_TAKEN"}},
		{"a router has the number", func(cp, _ *Machine) { cp.VirtualIP = &facts.VirtualIP{Routers: heard} }, []string{"cp1 VIRTUAL_ROUTER_TAKEN"}},
		{"keepalived is the owner's", func(cp, _ *Machine) { cp.Facts.OtherKeepalived = true }, []string{"cp1 HOST_KEEPALIVED_TAKEN"}},
		{"it is the cluster's", func(cp, _ *Machine) {
			cp.Facts.Files = map[string]string{machine.KeepalivedConf: "00"}
			cp.Facts.Addresses = append(cp.Facts.Addresses, facts.Address{Interface: "eth0", Prefix: netip.MustParsePrefix("10.0.0.100/32")})
			cp.VirtualIP = &facts.VirtualIP{Answers: "52:54:00:12:34:56", Routers: heard}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cp, w := Machine{Machine: machine.Machine{Host: inv.Hosts[0], Facts: healthy(10)}}, Machine{Machine: machine.Machine{Host: inv.Hosts[1], Facts: healthy(11)}}
			c.spoil(&cp, &w)
			var got []string
			for _, p := range Check(inv, []Machine{cp, w}, nil) {
				got = append(got, p.Host+" "+string(p.ID))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
