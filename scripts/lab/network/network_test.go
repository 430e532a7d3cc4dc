package network

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// These tests change the machine's network for a moment and need root. The
// numbers are ones that no lab gets by itself.
func ensure(t *testing.T, number int) Network {
	t.Helper()
	n := Network{Number: number, Owner: "/test/" + t.Name()}
	if err := n.Ensure(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Remove(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestEnsureTwiceThenRemoveLeavesNothing(t *testing.T) {
	n := Network{Number: 250, Owner: "/test/a"}
	for range 2 {
		if err := n.Ensure(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := n.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{n.Bridge(), n.InnerBridge()} {
		if _, err := netlink.LinkByName(name); err == nil {
			t.Errorf("link %s is still there", name)
		}
	}
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyBridge} {
		if there, err := hasTable(c, n.table(f)); err != nil || there {
			t.Errorf("table of family %d is still there (error: %v)", f, err)
		}
	}
}

func TestTwoOwnersDoNotShareABridge(t *testing.T) {
	n := ensure(t, 251)
	other := Network{Number: n.Number, Owner: "/test/other"}
	if err := other.Ensure(); err == nil {
		t.Error("a second owner took the bridge")
	}
	if err := other.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := netlink.LinkByName(n.Bridge()); err != nil {
		t.Error("a second owner removed the bridge")
	}
}

func TestACableThatGoesWithItsHostIsUnplugged(t *testing.T) {
	n := ensure(t, 253)
	for i := range 40 {
		host := exec.CommandContext(t.Context(), "unshare", "--net", "sleep", "1h")
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		c := n.Cable("w1", "eth0", At(n.Prefix(), 11), n.Gateway())
		for { // until it has a network of its own
			own, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", host.Process.Pid))
			if ours, err := os.Readlink("/proc/self/ns/net"); err != nil || own != ours {
				break
			}
		}
		if err := Plug(c, host.Process.Pid); err != nil {
			t.Fatal(err)
		}
		_ = host.Process.Kill()
		_ = host.Wait()
		time.Sleep(time.Duration(i) * time.Millisecond)
		if err := Unplug(c.Name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCutAndHealAreRememberedAndRepeatable(t *testing.T) {
	n := ensure(t, 252)
	cp1 := n.Cable("cp1", "eth0", At(n.Prefix(), 10), n.Gateway())
	w1 := n.Cable("w1", "eth0", At(n.Prefix(), 11), n.Gateway())
	check := func(step string, want bool) {
		t.Helper()
		if got := n.IsCut(cp1); got != want {
			t.Errorf("after %s: cp1 cut is %v", step, got)
		}
		if n.IsCut(w1) {
			t.Errorf("after %s: w1 is cut too", step)
		}
	}
	for _, step := range []struct {
		name string
		do   func(...Cable) error
		want bool
	}{{"cut", n.Cut, true}, {"cut again", n.Cut, true}, {"heal", n.Heal, false}, {"heal again", n.Heal, false}} {
		if err := step.do(cp1); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		check(step.name, step.want)
	}
	if err := n.Ensure(); err != nil {
		t.Fatal(err)
	}
}
