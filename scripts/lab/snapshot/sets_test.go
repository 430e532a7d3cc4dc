package snapshot

import (
	"net"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// TestSetsAreSeenFromOutside makes sets in a network namespace whose processes know nothing of them.
func TestSetsAreSeenFromOutside(t *testing.T) {
	pid := elsewhere(t)
	before := sets(t, pid)
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	var want []Fact
	if len(before) > 0 {
		t.Log(before) // this kernel has no ipsets
	} else {
		h, err := netlink.NewHandleAt(ns, syscall.NETLINK_NETFILTER)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if err := h.IpsetCreate("weave-1", "hash:ip", netlink.IpsetCreateOptions{Family: syscall.AF_INET}); err != nil {
			t.Fatal(err)
		}
		for i := range 3000 { // more than one message of the kernel's holds
			if err := h.IpsetAdd("weave-1", &netlink.IPSetEntry{IP: net.IPv4(10, 1, byte(i>>8), byte(i))}); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, Fact{"ipset", "weave-1", "hash:ip of 3000"})
	}
	c, err := nftables.New(nftables.WithNetNSFd(int(ns)))
	if err != nil {
		t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Name: "new", Family: nftables.TableFamilyIPv4})
	for _, s := range []*nftables.Set{
		{Table: table, Name: "a", KeyType: nftables.TypeIPAddr},
		{Table: table, Name: "b", KeyType: nftables.TypeIPAddr, DataType: nftables.TypeIPAddr, IsMap: true},
	} {
		if err := c.AddSet(s, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	want = append(append(before, want...), Fact{"nft", "2 new map b", ""}, Fact{"nft", "2 new set a", ""})
	if got := sets(t, pid); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// sets are the sets that a snapshot of the process's host would have.
func sets(t *testing.T, pid int) []Fact {
	t.Helper()
	kernels, err := ipsets(pid)
	if err != nil {
		t.Fatal(err)
	}
	named, err := tables(pid)
	if err != nil {
		t.Fatal(err)
	}
	return tidy(append(kernels, named...))
}

// elsewhere is a process in a network namespace of its own.
func elsewhere(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}
