package preflight

import (
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// TestSingleHost: a host is checked even if there is none to compare it with.
func TestSingleHost(t *testing.T) {
	inv := decode(t, "")
	inv.Hosts = inv.Hosts[:1]
	for id, spoil := range map[reason.ID]func(*facts.Host){
		reason.HostSwapOn:      func(f *facts.Host) { f.Swap = []facts.Swap{{Name: "/swap.img", Active: true}} },
		reason.HostTooSmall:    func(f *facts.Host) { f.MemoryKiB = 512 << 10 },
		reason.HostNameInvalid: func(f *facts.Host) { f.Hostname = "GPU_box" },
		reason.HostNoSystemd:   func(f *facts.Host) { f.Systemd = false },
	} {
		f := healthy(10)
		spoil(f)
		m := Machine{Machine: machine.Machine{Host: inventory.Host{Address: "10.0.0.10", Role: inventory.ControlPlane}, Facts: f}}
		found := Check(inv, []Machine{m}, nil)
		if len(found) != 1 || found[0].ID != id {
			t.Errorf("%s: found %v", id, found)
		}
	}
}
