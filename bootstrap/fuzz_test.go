package bootstrap

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/inventory"
)

// writtenKeys are all keys that a kubeconfig which kgpu writes has, by the path to them.
var writtenKeys = map[string]bool{
	".apiVersion": true, ".kind": true, ".current-context": true,
	".clusters": true, ".clusters.name": true, ".clusters.cluster": true, ".clusters.cluster.server": true, ".clusters.cluster.certificate-authority-data": true,
	".users": true, ".users.name": true, ".users.user": true, ".users.user.client-certificate-data": true, ".users.user.client-key-data": true,
	".contexts": true, ".contexts.name": true, ".contexts.context": true, ".contexts.context.cluster": true, ".contexts.context.user": true,
}

// strange are the keys of a kubeconfig that kgpu does not write.
func strange(value any, path string) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if at := path + "." + key; !writtenKeys[at] {
				out = append(out, at)
			} else {
				out = append(out, strange(below, at)...)
			}
		}
	case []any:
		for _, below := range v {
			out = append(out, strange(below, path)...)
		}
	}
	return out
}

// FuzzKubeconfig: of whatever a control plane sends as its kubeconfig comes nothing, or one cluster, one user and one
// context, called after the cluster, with no other keys than kgpu writes.
func FuzzKubeconfig(f *testing.F) {
	honest := adminConfText(f, newSigner(f).admin(f, "https://10.0.0.1:6443"))
	for _, conf := range append([]string{honest, strings.ReplaceAll(honest, "preferences: {}", "preferences: {a: &a [*a]}")}, slices.Collect(maps.Values(evilKubeconfigs(honest)))...) {
		if len(conf) <= kubeconfig.MaxFromHost {
			f.Add([]byte(conf))
		}
	}
	cp := inventory.Host{Address: "192.0.2.1", PrivateAddress: netip.MustParseAddr("10.0.0.1"), Role: inventory.ControlPlane}
	f.Fuzz(func(t *testing.T, conf []byte) {
		inside, err := kubeconfig.FromHost(conf)
		if err != nil {
			return
		}
		out, err := withSource(renamed(inside, "lab", cp, netip.Addr{}), conf, cp)
		if err != nil {
			t.Fatal(err)
		}
		var all any
		if err := yaml.Unmarshal(out, &all); err != nil {
			t.Fatalf("%q becomes %q: %v", conf, out, err)
		}
		if keys := strange(all, ""); len(keys) > 0 {
			t.Errorf("%q becomes %q, with %q", conf, out, keys)
		}
		if a, err := kubeconfig.Parse(out); err != nil || !kubeconfig.Alone(out) || a.Cluster != "lab" || a.User != "lab-admin" || a.Context != "lab" {
			t.Errorf("%q becomes %q: %v", conf, out, err)
		}
	})
}

// FuzzStory: whatever a host tells of itself, judging it and planning for it does not panic.
func FuzzStory(f *testing.F) {
	f.Add([]byte(honest("w1")))
	f.Add([]byte(honest("w1", "pci=0000:17:00.0 0302 20b0 -", "gpu=GPU-1, A100, 00000000:17:00.0, 40960 MiB, Enabled", "mig=GPU 0: A100 (UUID: GPU-1)", "mig=  MIG 1g.5gb Device 0: (UUID: MIG-1)", "nvidia-loaded=580.1", "nvidia-library=580.1")))
	f.Add([]byte(honest("w1", "kernel-installed=x", "swap-active=/swap file 1 1 -2", "containerd-toml=dmVyc2lvbiA9IDIK", "daemon-json=e30=", "address=2: eth0 inet 10.0.0.2/24")))
	inv, err := inventory.Decode("inventory.yaml", []byte("hosts:\n  - {address: 10.0.0.1, name: cp, role: control-plane}\n  - {address: 10.0.0.2}\n"), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		f.Fatal(err)
	}
	cp, err := facts.Parse([]byte(honest("cp", "address=2: eth0 inet 10.0.0.1/24")))
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
					machines = append(machines, preflight.Machine{Host: entry, Facts: seen[entry.ID()]})
				}
			}
			preflight.Check(inv, machines, nil)
			if _, err := plan.Needs(inv, seen); err != nil {
				continue
			}
			_, _ = plan.Up(inv, seen)
			_, _ = plan.Reset(inv, seen, nil)
		}
	})
}
