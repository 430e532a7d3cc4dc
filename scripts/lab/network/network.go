// Package network is the wiring of a lab: a bridge with the lab's router on
// it, a second, private bridge behind the bastion, a cable for each host, and
// the switches that cut or slow a cable. Nothing of it leads to the outside.
package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Network is the wiring of the lab with this number. Owner, the lab's state
// folder, marks the bridges, so that no lab takes another's.
type Network struct {
	Number int
	Owner  string
}

// Bridge is the name of the bridge that the hosts and the router share.
func (n Network) Bridge() string { return fmt.Sprintf("kgl%d", n.Number) }

// InnerBridge is the name of the private bridge behind the bastion; the
// machine has no address there.
func (n Network) InnerBridge() string { return n.Bridge() + "i" }

// Prefix is the address range of the hosts.
func (n Network) Prefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 199, byte(n.Number), 0}), 24)
}

// InnerPrefix is the address range behind the bastion.
func (n Network) InnerPrefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 198, byte(n.Number), 0}), 24)
}

// Gateway is the address of the lab's router, where the lab's internet listens.
func (n Network) Gateway() netip.Addr { return At(n.Prefix(), 1) }

// InnerGateway is the bastion's address on the private segment.
func (n Network) InnerGateway() netip.Addr { return At(n.InnerPrefix(), 1) }

// At is the address number last of a /24.
func At(p netip.Prefix, last byte) netip.Addr {
	a := p.Addr().As4()
	a[3] = last
	return netip.AddrFrom4(a)
}

// Taken says whether the number's bridge exists and belongs to another owner.
// One without an owner was left by a command that died before marking it.
func (n Network) Taken() bool {
	link, err := netlink.LinkByName(n.Bridge())
	return err == nil && link.Attrs().Alias != "" && link.Attrs().Alias != n.Owner
}

// Ensure makes the bridges and the router's rules; what is there stays.
func (n Network) Ensure() error {
	if n.Taken() {
		return fmt.Errorf("bridge %s belongs to something else", n.Bridge())
	}
	if err := n.ensureBridge(n.Bridge(), n.Gateway()); err != nil {
		return err
	}
	if err := n.ensureBridge(n.InnerBridge(), netip.Addr{}); err != nil {
		return err
	}
	if err := netlink.RouteReplace(n.noWayIn()); err != nil {
		return fmt.Errorf("close the way to %s: %w", n.InnerPrefix(), err)
	}
	return n.ensureRules()
}

// noWayIn keeps the machine from looking for the private segment elsewhere.
func (n Network) noWayIn() *netlink.Route {
	p := n.InnerPrefix()
	return &netlink.Route{
		Dst:  &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)},
		Type: unix.RTN_UNREACHABLE,
	}
}

func (n Network) ensureBridge(name string, addr netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		// A bridge without an address of its own takes that of a port, and a new one when the port goes.
		attrs.HardwareAddr = hardwareAddr(n.Gateway(), name == n.InnerBridge())
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("add bridge %s: %w", name, err)
		}
		link, err = netlink.LinkByName(name)
	}
	if err != nil {
		return err
	}
	if err := netlink.LinkSetAlias(link, n.Owner); err != nil {
		return fmt.Errorf("mark bridge %s: %w", name, err)
	}
	if err := disableIPv6(name); err != nil {
		return err
	}
	if addr.IsValid() {
		if err := netlink.AddrReplace(link, address(netip.PrefixFrom(addr, 24))); err != nil {
			return fmt.Errorf("address of %s: %w", name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bridge %s up: %w", name, err)
	}
	return nil
}

// disableIPv6 keeps the machine itself quiet on a bridge of the lab.
func disableIPv6(name string) error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Remove takes the rules, all cables and the bridges away.
func (n Network) Remove() error {
	if n.Taken() {
		return nil
	}
	err := n.removeRules()
	if e := netlink.RouteDel(n.noWayIn()); !errors.Is(e, unix.ESRCH) {
		err = errors.Join(err, e)
	}
	links, lerr := netlink.LinkList()
	err = errors.Join(err, lerr)
	for _, l := range links {
		if name := l.Attrs().Name; strings.HasPrefix(name, n.Bridge()+"-") || strings.HasPrefix(name, n.InnerBridge()+"-") {
			err = errors.Join(err, Unplug(name))
		}
	}
	return errors.Join(err, Unplug(n.Bridge()), Unplug(n.InnerBridge()))
}

// Cable connects one interface of a host with a bridge.
type Cable struct {
	Name    string     `json:"name"`   // of the end at the bridge
	Bridge  string     `json:"bridge"` //
	Inside  string     `json:"inside"` // of the end in the host
	Address netip.Addr `json:"address"`
	Gateway netip.Addr `json:"gateway"` // zero: no default route over this cable
}

// Cable describes the cable of host with this address, which says the bridge.
func (n Network) Cable(host, inside string, addr, gateway netip.Addr) Cable {
	bridge := n.Bridge()
	if n.InnerPrefix().Contains(addr) {
		bridge = n.InnerBridge()
	}
	return Cable{Name: bridge + "-" + host, Bridge: bridge, Inside: inside, Address: addr, Gateway: gateway}
}

// Plug lays the cable into the network namespace of the process pid.
func Plug(c Cable, pid int) error {
	bridge, err := netlink.LinkByName(c.Bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", c.Bridge, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex, attrs.Flags = c.Name, bridge.Attrs().Index, net.FlagUp
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: c.Inside, PeerNamespace: netlink.NsPid(pid),
		PeerHardwareAddr: hardwareAddr(c.Address, false),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add %s: %w", c.Name, err)
	}
	if err := disableIPv6(c.Name); err != nil {
		return err
	}
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	inside, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer inside.Close()
	return setUp(inside, c)
}

func setUp(inside *netlink.Handle, c Cable) error {
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	eth, err := inside.LinkByName(c.Inside)
	if err != nil {
		return err
	}
	if err := inside.AddrAdd(eth, address(netip.PrefixFrom(c.Address, 24))); err != nil {
		return fmt.Errorf("address of %s: %w", c.Inside, err)
	}
	if err := errors.Join(inside.LinkSetUp(lo), inside.LinkSetUp(eth)); err != nil {
		return fmt.Errorf("%s up: %w", c.Inside, err)
	}
	if !c.Gateway.IsValid() {
		return nil
	}
	if err := inside.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: c.Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("default route of %s: %w", c.Inside, err)
	}
	return nil
}

// Unplug removes a link of the machine; one that is not there is no error, nor one that goes meanwhile with its other end's host.
func Unplug(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

func address(p netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}}
}

// hardwareAddr is the same at each boot of a host, as that of a real card is.
func hardwareAddr(a netip.Addr, second bool) net.HardwareAddr {
	b := a.As4()
	hw := net.HardwareAddr{0x02, 0x4b, b[0], b[1], b[2], b[3]}
	if second {
		hw[1]++
	}
	return hw
}
