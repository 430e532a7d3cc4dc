package machine

import (
	"net/netip"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// TestNodeAddressOfAName: a name does not say which of a host's addresses is the node's.
func TestNodeAddressOfAName(t *testing.T) {
	ip := netip.MustParseAddr
	prefix := netip.MustParsePrefix
	for _, c := range []struct {
		name            string
		nodeIP, reached string
		want            string
	}{
		{"nothing is known", "", "", "192.168.7.5"},
		{"SSH reached it", "", "10.0.0.5", "10.0.0.5"},
		{"its kubelet was given one", "10.0.0.5", "192.168.7.5", "10.0.0.5"},
		{"its kubelet was given none", "none", "10.0.0.5", "192.168.7.5"},
		{"a port was forwarded", "", "127.0.0.1", "192.168.7.5"},
		{"behind an address of a router", "", "203.0.113.9", "192.168.7.5"},
	} {
		f := &facts.Host{Addresses: []facts.Address{{Prefix: prefix("127.0.0.1/8")}, {Prefix: prefix("192.168.7.5/24")}, {Prefix: prefix("10.0.0.5/24")}}}
		if c.nodeIP != "" {
			f.Kubelet = &facts.Member{}
			f.NodeIP, _ = netip.ParseAddr(c.nodeIP)
		}
		if c.reached != "" {
			f.Reached = ip(c.reached)
		}
		if got := (Machine{Host: inventory.Host{Address: "gpu5.lab"}, Facts: f}).NodeAddress(); got != ip(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
