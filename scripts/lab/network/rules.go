package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const cutSet = "cut"

// The router's rules need the family ip, where packets can be refused, and the
// cut cables the family bridge, which sees all traffic. Both tables have one name.
func (n Network) table(f nftables.TableFamily) *nftables.Table {
	return &nftables.Table{Family: f, Name: "kgpu_" + n.Bridge()}
}

func hasTable(c *nftables.Conn, t *nftables.Table) (bool, error) {
	tables, err := c.ListTablesOfFamily(t.Family)
	if err != nil {
		return false, fmt.Errorf("list nftables tables: %w", err)
	}
	for _, have := range tables {
		if have.Name == t.Name {
			return true, nil
		}
	}
	return false, nil
}

func (n Network) ensureRules() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	for family, fill := range map[nftables.TableFamily]func(*nftables.Conn, *nftables.Table) error{
		nftables.TableFamilyIPv4: n.addRouter, nftables.TableFamilyBridge: addSwitches,
	} {
		t := n.table(family)
		there, err := hasTable(c, t)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		if err := fill(c, c.AddTable(t)); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil { // one transaction: all tables or none
		return fmt.Errorf("add nftables table %s: %w", n.table(0).Name, err)
	}
	return nil
}

func (n Network) removeRules() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyBridge} {
		t := n.table(family)
		there, err := hasTable(c, t)
		if err != nil {
			return err
		}
		if there {
			c.DelTable(t)
		}
	}
	return c.Flush()
}

func (n Network) addRouter(c *nftables.Conn, t *nftables.Table) error {
	const netUnreachable, tcp = 0, unix.IPPROTO_TCP // ICMP code, protocol number
	refuse := []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: netUnreachable}}

	// What hosts send to the router's card but not to its address wants to go further: Service addresses that
	// kube-proxy has no rules for yet, and the real internet. It is refused at once, as a dropped packet would
	// cost its sender half a minute. Packets from host to host bear another card's address.
	pre := c.AddChain(&nftables.Chain{
		Name: "further", Table: t, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw,
	})
	further := concat(interfaceIs(expr.MetaKeyIIFNAME, n.Bridge(), expr.CmpOpEq),
		bytesAre(expr.PayloadBaseLLHeader, 0, hardwareAddr(n.Gateway(), false), expr.CmpOpEq),
		bytesAre(expr.PayloadBaseNetworkHeader, destinationOffset, n.Gateway().AsSlice(), expr.CmpOpNeq))
	c.AddRule(&nftables.Rule{Table: t, Chain: pre, Exprs: concat(further, []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{tcp}},
		&expr.Reject{Type: unix.NFT_REJECT_TCP_RST},
	})})
	c.AddRule(&nftables.Rule{Table: t, Chain: pre, Exprs: concat(further, refuse)})

	// A machine that forwards packets must not become a way in.
	forward := c.AddChain(&nftables.Chain{
		Name: "outside", Table: t, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	c.AddRule(&nftables.Rule{Table: t, Chain: forward, Exprs: concat(
		interfaceIs(expr.MetaKeyOIFNAME, n.Bridge(), expr.CmpOpEq), interfaceIs(expr.MetaKeyIIFNAME, n.Bridge(), expr.CmpOpNeq), refuse)})
	return nil
}

func addSwitches(c *nftables.Conn, t *nftables.Table) error {
	set := &nftables.Set{Table: t, Name: cutSet, KeyType: nftables.TypeIFName}
	if err := c.AddSet(set, nil); err != nil {
		return err
	}
	for _, side := range []struct {
		name string
		hook *nftables.ChainHook
		key  expr.MetaKey
	}{
		{"from", nftables.ChainHookPrerouting, expr.MetaKeyIIFNAME},
		{"to", nftables.ChainHookPostrouting, expr.MetaKeyOIFNAME},
	} {
		chain := c.AddChain(&nftables.Chain{
			Name: side.name, Table: t, Type: nftables.ChainTypeFilter,
			Hooknum: side.hook, Priority: nftables.ChainPriorityRaw,
		})
		c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: side.key, Register: 1},
			&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	return nil
}

// Cut drops everything on these cables, silently: the link stays up.
func (n Network) Cut(cables ...Cable) error {
	return n.change(cables, (*nftables.Conn).SetAddElements)
}

// Heal undoes Cut.
func (n Network) Heal(cables ...Cable) error {
	return n.change(cables, (*nftables.Conn).SetDeleteElements)
}

func (n Network) change(cables []Cable, f func(*nftables.Conn, *nftables.Set, []nftables.SetElement) error) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	set, err := c.GetSetByName(n.table(nftables.TableFamilyBridge), cutSet)
	if err != nil {
		return fmt.Errorf("the network of the lab is not up: %w", err)
	}
	var err2 error
	for _, cable := range cables {
		err2 = errors.Join(err2, f(c, set, []nftables.SetElement{{Key: ifname(cable.Name)}}))
		if err := c.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist) {
			err2 = errors.Join(err2, fmt.Errorf("%s: %w", cable.Name, err))
		}
	}
	return err2
}

// IsCut says whether a cable is cut.
func (n Network) IsCut(cable Cable) bool {
	c, err := nftables.New()
	if err != nil {
		return false
	}
	set, err := c.GetSetByName(n.table(nftables.TableFamilyBridge), cutSet)
	if err != nil {
		return false
	}
	elements, err := c.GetSetElements(set)
	if err != nil {
		return false
	}
	for _, e := range elements {
		if string(e.Key) == string(ifname(cable.Name)) {
			return true
		}
	}
	return false
}

// Masquerade makes the host with process pid the way out of the private segment.
func (n Network) Masquerade(pid int, out string) error {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return err
	}
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "bastion"})
	chain := c.AddChain(&nftables.Chain{
		Name: "out", Table: t, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: concat(
		interfaceIs(expr.MetaKeyOIFNAME, out, expr.CmpOpEq), sourceIn(n.InnerPrefix()), []expr.Any{&expr.Masq{}})})
	return c.Flush()
}

func interfaceIs(key expr.MetaKey, name string, op expr.CmpOp) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: ifname(name)}}
}

// ifname is an interface's name as nftables compares it: zero-padded.
func ifname(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}

const (
	sourceOffset      = 12 // of the source address in an IPv4 header
	destinationOffset = 16
)

func bytesAre(header expr.PayloadBase, offset uint32, want []byte, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: header, Offset: offset, Len: uint32(len(want))},
		&expr.Cmp{Op: op, Register: 1, Data: want},
	}
}

func sourceIn(p netip.Prefix) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: sourceOffset, Len: net.IPv4len},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: net.IPv4len,
			Mask: net.CIDRMask(p.Bits(), 32), Xor: make([]byte, net.IPv4len),
		},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}

func concat(parts ...[]expr.Any) []expr.Any {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
