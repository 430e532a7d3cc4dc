package plan

import (
	"cmp"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// OldContainerd says of a host whose pods run, or would run, in a containerd before 2 which one that is; empty: they do not.
func OldContainerd(inv *inventory.Inventory, f *facts.Host) string {
	has := cmp.Or(f.Packages["containerd.io"].Version, f.Packages["containerd"].Version)
	version := cmp.Or(has, f.Containerd.Version)
	if inv.Runtime != inventory.Containerd || version == "" || catalog.CompareDebian(version, "2") >= 0 {
		return ""
	}
	upstream, _, _ := strings.Cut(version, "-")
	upstream, _, _ = strings.Cut(upstream, "~")
	if has == "" {
		upstream += ", which apt would install"
		if f.Containerd.Why != "" {
			upstream += " (Docker's repository offers no containerd.io: " + strings.TrimSuffix(f.Containerd.Why, ".") + ")"
		}
	}
	return "containerd is " + upstream
}

// oldContainerds warns of runtimes that have ended. Sources: RELEASES.md and docs/containerd-2.0.md of containerd.
func (b *builder) oldContainerds() {
	for _, h := range b.hosts {
		if is := OldContainerd(b.inv, h.facts); is != "" {
			b.graph.Warnings = append(b.graph.Warnings, fmt.Sprintf("%s: %s: support for it ended in September 2026, Kubernetes refuses it from 1.%d on, and pods have neither image volumes nor user namespaces in it: %s [%s]",
				h.id, is, catalog.ContainerdTwoSince, reason.Lookup(reason.HostContainerdOld).Advice, reason.HostContainerdOld))
		}
	}
}
