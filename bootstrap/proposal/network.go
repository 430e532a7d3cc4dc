package proposal

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// givePrivateAddresses sets the hosts' private addresses if all of them share a private network and were reached by
// other addresses.
func givePrivateAddresses(in []*candidate) {
	if len(in) < 2 || !slices.ContainsFunc(in, func(c *candidate) bool { return !reachedPrivately(c) }) {
		return
	}
	for _, network := range networks(in[0].Facts) {
		found := make([]netip.Addr, 0, len(in))
		for _, c := range in {
			if a := addressIn(c.Facts, network); a.IsValid() && !slices.Contains(found, a) {
				found = append(found, a)
			}
		}
		if len(found) < len(in) {
			continue
		}
		for i, c := range in {
			if found[i].String() != c.Address {
				c.private, c.privateNote = found[i], fmt.Sprintf("in %s, where all hosts are: the nodes find each other there", network)
			}
		}
		return
	}
}

// reachedPrivately reports whether a host was reached by an address of its own in a private network.
func reachedPrivately(c *candidate) bool {
	a, err := netip.ParseAddr(c.Address)
	return err == nil && a.Is4() && a.IsPrivate() && slices.ContainsFunc(c.Facts.Addresses, func(x facts.Address) bool { return x.Prefix.Addr() == a })
}

// networks returns a host's private networks, without those of containers.
func networks(f *facts.Host) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range f.Addresses {
		if isOwn(f, a) && a.Prefix.Addr().IsPrivate() && a.Prefix.Bits() < 32 {
			out = append(out, a.Prefix.Masked())
		}
	}
	return out
}

// isOwn reports whether an address is the machine's, not that of a container bridge or a pod network.
func isOwn(f *facts.Host, a facts.Address) bool {
	if !a.Prefix.Addr().Is4() || a.Prefix.Addr().IsLoopback() || slices.Contains(f.PodLinks, a.Interface) {
		return false
	}
	bridges := []string{"docker", "br-", "virbr", "veth", "cni", "lxcbr", "lxdbr", "podman"}
	return !slices.ContainsFunc(bridges, func(made string) bool { return strings.HasPrefix(a.Interface, made) })
}

func addressIn(f *facts.Host, network netip.Prefix) netip.Addr {
	for _, a := range f.Addresses {
		if isOwn(f, a) && a.Prefix.Masked() == network {
			return a.Prefix.Addr()
		}
	}
	return netip.Addr{}
}

// These are candidates for the cluster's pod and service ranges, the defaults first.
var (
	podRanges     = []string{"10.244.0.0/16", "10.128.0.0/16", "10.64.0.0/16", "172.24.0.0/16", "192.168.0.0/16"}
	serviceRanges = []string{"10.96.0.0/12", "10.160.0.0/16", "10.32.0.0/16", "172.20.0.0/16", "192.168.240.0/20"}
)

// nodeBits is the prefix length of a node's pod range.
const nodeBits = 24

// chooseRanges chooses ranges that no host uses otherwise, and notes why they are not the defaults. A zero range is the
// default.
func chooseRanges(in []*candidate) (pods, services netip.Prefix, note string) {
	var used []netip.Prefix
	for _, c := range in {
		used = append(used, usedNetworks(c)...)
	}
	free := func(ranges []string, most int) netip.Prefix {
		for _, text := range ranges {
			r := netip.MustParsePrefix(text)
			r = netip.PrefixFrom(r.Addr(), min(r.Bits(), most)).Masked()
			if !slices.ContainsFunc(used, r.Overlaps) {
				return r
			}
		}
		return netip.Prefix{} // preflight reports what conflicts with the default
	}
	pods = free(podRanges, nodeBits-bits.Len(uint(max(len(in)-1, 0))))
	used = append(used, pods)
	services = free(serviceRanges, 32)
	var moved []string
	if pods.IsValid() && pods.String() != podRanges[0] {
		moved = append(moved, "podCIDR")
	}
	if services.IsValid() && services.String() != serviceRanges[0] {
		moved = append(moved, "serviceCIDR")
	}
	if len(moved) > 0 {
		note = "The default of " + strings.Join(moved, " and ") + " is in use where the hosts are, or too small for them. This is free there."
	}
	return pods, services, note
}

// usedNetworks returns the networks that a host uses. An existing node's routes include the cluster's own ranges, so they do
// not count.
func usedNetworks(c *candidate) []netip.Prefix {
	var out []netip.Prefix
	if a, err := netip.ParseAddr(c.Address); err == nil && a.Is4() {
		out = append(out, netip.PrefixFrom(a, 32))
	}
	if c.Facts.Kubelet != nil || c.Facts.ControlPlane != nil {
		return out
	}
	if len(c.Facts.PodLinks) == 0 {
		out = append(out, slices.DeleteFunc(slices.Clone(c.Facts.Routes), func(p netip.Prefix) bool { return !p.Addr().Is4() })...)
	}
	for _, a := range c.Facts.Addresses {
		if a.Prefix.Addr().Is4() && !slices.Contains(c.Facts.PodLinks, a.Interface) {
			out = append(out, netip.PrefixFrom(a.Prefix.Addr(), 32))
		}
	}
	return out
}
