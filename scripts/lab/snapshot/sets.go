package snapshot

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// ipsets lists the kernel's sets of addresses, which firewall rules name, with the number of their entries. Agents in
// containers make them, and the host may have no program that shows them. A kernel without them is a fact, too: otherwise
// it would look like a host that has none.
func ipsets(pid int) ([]Fact, error) {
	ns, err := netns.GetFromPath(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = ns.Close() }()
	h, err := netlink.NewHandleAt(ns, syscall.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	sets, err := h.IpsetListAll()
	if errors.Is(err, syscall.EINVAL) { // what netfilter answers to a subsystem that it does not have
		return []Fact{{"ipset", "none", "this kernel has no ip_set"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ipsets: %w", err)
	}
	// A long set comes in several parts, of which only the first one has its type.
	types, entries, facts := map[string]string{}, map[string]int{}, []Fact{}
	for _, s := range sets {
		types[s.SetName] += s.TypeName
		entries[s.SetName] += len(s.Entries)
	}
	for name, typ := range types {
		facts = append(facts, Fact{"ipset", name, fmt.Sprintf("%s of %d", typ, entries[name])})
	}
	return facts, nil
}

// namedSets lists nftables' sets and maps. Those without a name of their own are parts of rules.
func namedSets(c *nftables.Conn) ([]Fact, error) {
	tables, err := c.ListTables()
	if err != nil {
		return nil, err
	}
	var facts []Fact
	for _, table := range tables {
		sets, err := c.GetSets(table)
		if err != nil {
			if left, e := c.ListTablesOfFamily(table.Family); e == nil && !hasTable(left, table.Name) {
				continue // removed meanwhile
			}
			return nil, err
		}
		for _, set := range sets {
			if set.Anonymous {
				continue
			}
			kind := "set"
			if set.IsMap {
				kind = "map"
			}
			facts = append(facts, Fact{"nft", fmt.Sprintf("%d %s %s %s", table.Family, table.Name, kind, set.Name), ""})
		}
	}
	return facts, nil
}

func hasTable(tables []*nftables.Table, name string) bool {
	for _, t := range tables {
		if t.Name == name {
			return true
		}
	}
	return false
}
