package machine

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// A host with a real card, an H100 with driver 580.159.04 whose libraries are in a folder of its own: the driver stays, the card
// is offered, and a container gets the driver's files.
func TestRealCard(t *testing.T) {
	text, err := os.ReadFile("../facts/testdata/h100.txt")
	if err != nil {
		t.Fatal(err)
	}
	f, err := facts.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	inv := &inventory.Inventory{Kubernetes: inventory.Kubernetes{Version: inventory.Version{Major: 1, Minor: 36}}}
	if c, err := ChooseDriver(inv, f); err != nil || !c.Keep || c.Branch != 580 || !DriverWorks(inv, f) {
		t.Errorf("driver: %+v, %v", c, err)
	}
	const uuid = "GPU-5a1d0c3e-7b42-4f0a-9c6d-2e8b1f7a9c40"
	want := []PluginDevice{{UUID: uuid, Name: "NVIDIA H100 80GB HBM3", Resource: "nvidia.com/gpu", Share: inv.GPU.Share()}}
	if got := PluginDevices(inv, f); !slices.Equal(got, want) || len(Cards(inv, f)) != 1 || FabricOf(f) != catalog.NoFabric {
		t.Errorf("%+v, cards %+v, fabric %q", got, Cards(inv, f), FabricOf(f))
	}
	if m := DriverMounts(f); !slices.ContainsFunc(m, func(m DriverMount) bool {
		return m.From == "/usr/local/nvidia/lib64/libcuda.so.580.159.04" && m.To == "/usr/local/nvidia/lib64/libcuda.so.1"
	}) {
		t.Errorf("%+v", m)
	}
	if f.NVIDIA.Features["nvidia.com/cuda.driver-version.full"] != f.NVIDIA.Loaded || f.NVIDIA.GPUs[0].MemoryMiB != 81559 {
		t.Errorf("%+v, %+v", f.NVIDIA.Features, f.NVIDIA.GPUs)
	}
}

// TestNodeAddressIgnoresADNSName: if the inventory's address is a DNS name, the node's address is one of the host's
// own.
func TestNodeAddressIgnoresADNSName(t *testing.T) {
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
