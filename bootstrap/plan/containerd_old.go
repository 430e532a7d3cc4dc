package plan

import (
	"fmt"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// oldContainerds warns of runtimes that have ended. Sources: RELEASES.md and docs/containerd-2.0.md of containerd.
func (b *builder) oldContainerds() {
	for _, h := range b.hosts {
		if is := machine.OldContainerd(b.Inventory, h.Facts); is != "" {
			b.graph.Warnings = append(b.graph.Warnings, fmt.Sprintf("%s: %s: support for it ended in September 2026, Kubernetes refuses it from 1.%d on, and pods have neither image volumes nor user namespaces in it: %s [%s]",
				h.id, is, catalog.ContainerdTwoSince, reason.Lookup(reason.HostContainerdOld).Advice, reason.HostContainerdOld))
		}
	}
}
