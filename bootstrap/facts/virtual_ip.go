package facts

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// VirtualIP is what a host found of an address that is to be the cluster's virtual one.
type VirtualIP struct {
	Answers string          // the MAC address of a machine that has it; empty if none answered
	Routers []VirtualRouter // the VRRP routers that were heard
	Deaf    bool            // the host could not listen to them
}

// VirtualRouter is a router of the Virtual Router Redundancy Protocol.
type VirtualRouter struct {
	ID     int
	Source netip.Addr // a host that has it
}

// ParseVirtualIP reads the output of scripts/virtual-ip.sh.
func ParseVirtualIP(output []byte) (*VirtualIP, error) {
	a, err := split(output, "kgpu-virtual-ip=1")
	if err != nil {
		return nil, err
	}
	v := &VirtualIP{Deaf: a.has("vrrp-deaf")}
	if mac := a.first("answers"); mac != "" {
		at, err := net.ParseMAC(mac)
		if err != nil {
			return nil, bad("answers", mac, err)
		}
		v.Answers = at.String()
	}
	for _, line := range a["vrrp"] {
		number, source, _ := strings.Cut(line, " ")
		id, err := strconv.ParseUint(number, 10, 8)
		if err != nil {
			return nil, bad("vrrp", line, err)
		}
		at, err := netip.ParseAddr(source)
		if err != nil {
			return nil, bad("vrrp", line, fmt.Errorf("want an address: %w", err))
		}
		if r := (VirtualRouter{int(id), at}); !slices.Contains(v.Routers, r) {
			v.Routers = append(v.Routers, r)
		}
	}
	return v, nil
}
