package plan

import (
	"net/netip"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestNotebookOnTheInternet holds that no port of a node leads to the notebook from the internet unless the inventory says so.
func TestNotebookOnTheInternet(t *testing.T) {
	for _, c := range []struct {
		name, address, more string // of w1: an interface's address; lines of the inventory
		want, never         string // in the manifest
		why                 string // in the reason of the step
	}{
		{"a private address", "172.20.1.2", "", "nodePort: 30061", "ClusterIP", ""},
		{"an address of a carrier", "100.100.3.4", "", "nodePort: 30061", "ClusterIP", ""},
		{"a pod's address", "44.1.0.1", "kubernetes: {podCIDR: 44.1.0.0/16}\n", "nodePort: 30061", "ClusterIP", ""},
		{"an IPv6 address, to which no port of nodes leads", "2001:db8::7", "", "nodePort: 30061", "ClusterIP", ""},
		{"a public address", "203.0.113.7", "", "type: ClusterIP", "odePort", "w1 has the public address 203.0.113.7"},
		{"a public address, and the inventory wants the port", "203.0.113.7", "notebook: {nodePort: 30099}\n", "nodePort: 30099", "ClusterIP", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := decode(t, oneCard+c.more), withNotebook(t)
			seen["cp1"].ControlPlane.PodCIDR = inv.Kubernetes.PodCIDR.String()
			a := netip.MustParseAddr(c.address)
			seen["w1"].Addresses = append(seen["w1"].Addresses, facts.Address{Interface: "eth1", Prefix: netip.PrefixFrom(a, a.BitLen())})
			g, err := Notebook(inv, seen, true)
			if err != nil {
				t.Fatal(err)
			}
			step := g.Steps[0]
			manifest := step.Input.Values["manifest"]
			if !strings.Contains(manifest, c.want) || strings.Contains(manifest, c.never) {
				t.Errorf("the manifest has not %s, or has %s:\n%s", c.want, c.never, manifest)
			}
			if c.why != "" != strings.Contains(step.Reason, "public address") || !strings.Contains(step.Reason, c.why) {
				t.Errorf("the plan says %q", step.Reason)
			}
		})
	}
	t.Run("the inventory's address", func(t *testing.T) {
		seen := withNotebook(t)
		inv := decode(t, oneCard)
		inv.Hosts[1].Address = "203.0.113.9" // translated: no interface has it
		if g, err := Notebook(inv, seen, true); err != nil || !strings.Contains(g.Steps[0].Input.Values["manifest"], "type: ClusterIP") {
			t.Errorf("the address that the inventory names is not looked at: %v", err)
		}
	})
}
