package bootstrap

import (
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/inventory"
)

// FuzzStory: whatever a host tells of itself, judging it and planning for it does not panic.
func FuzzStory(f *testing.F) {
	f.Add([]byte(sitetest.Bare("w1")))
	f.Add([]byte(sitetest.Bare("w1", "pci=0000:17:00.0 0302 20b0 -", "gpu=GPU-1, A100, 00000000:17:00.0, 40960 MiB, Enabled", "mig=GPU 0: A100 (UUID: GPU-1)", "mig=  MIG 1g.5gb Device 0: (UUID: MIG-1)", "nvidia-loaded=580.1", "nvidia-library=580.1")))
	f.Add([]byte(sitetest.Bare("w1", "kernel-installed=x", "swap-active=/swap file 1 1 -2", "containerd-toml=dmVyc2lvbiA9IDIK", "daemon-json=e30=", "address=2: eth0 inet 10.0.0.2/24")))
	inv, err := inventory.Decode("inventory.yaml", []byte("hosts:\n  - {address: 10.0.0.1, name: cp, role: control-plane}\n  - {address: 10.0.0.2}\n"), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		f.Fatal(err)
	}
	cp, err := facts.Parse([]byte(sitetest.Bare("cp", "address=2: eth0 inet 10.0.0.1/24")))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := facts.Parse(data)
		if err != nil {
			return
		}
		for _, seen := range []map[string]*facts.Host{{"cp": cp, "10.0.0.2": h}, {"cp": h}} {
			var machines []preflight.Machine
			for _, entry := range inv.Hosts {
				if seen[entry.ID()] != nil {
					machines = append(machines, preflight.Machine{Machine: machine.Machine{Host: entry, Facts: seen[entry.ID()]}})
				}
			}
			preflight.Check(inv, machines, nil)
			if _, err := plan.RequiredEndpoints(inv, seen); err != nil {
				continue
			}
			_, _ = plan.Up(inv, seen)
			_, _ = plan.Reset(inv, seen, nil)
		}
	})
}
