package plan

import (
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// accelerators plans that the kubelets find the cards: they look for them once, when they start, and most start before there
// is a driver. It returns the steps; there are none where a device plugin offers the cards.
func (b *builder) accelerators(joined []graph.Ref) []graph.Ref {
	if b.mechanism() != catalog.Accelerators {
		return nil
	}
	var found []graph.Ref
	for _, h := range b.members() {
		if h.cards == 0 {
			continue
		}
		have := allocatable(b.NodeOf(h.Machine), catalog.Accelerators.Resource())
		if have == h.cards {
			b.skip(h, "gpu/accelerators", "the kubelet has found the cards")
			continue
		}
		needs := slices.Clone(h.gpuLast)
		for _, r := range joined {
			if r.Host == h.id {
				needs = append(needs, r)
			}
		}
		found = append(found, b.side(h, graph.Step{
			Ref:    graph.Ref{ID: "gpu/accelerators"},
			Reason: fmt.Sprintf("it offers %d of %s", have, plural.Of(h.cards, "card")), Needs: needs,
		}))
	}
	return found
}

// oldWarnings tell what a version that has long ended cannot do.
func (b *builder) oldWarnings() {
	version := b.Inventory.Kubernetes.Version.MinorString()
	warn := func(format string, args ...any) {
		b.warn("Kubernetes %s: %s", version, fmt.Sprintf(format, args...))
	}
	gates := b.Minor.Gates(b.Inventory.Kubernetes.FeatureGates)
	switch m := b.mechanism(); {
	case !b.hasCards() && !b.seesCards():
	case m == "":
		warn("its feature gates leave no way to schedule cards")
	case m == catalog.Accelerators && gates[string(catalog.DevicePlugins)]:
		warn("kgpu brings NVIDIA's device plugin from 1.10 on; the gate DevicePlugins is for one of yours, and pods of kgpu ask for %s", m.Resource())
	case m == catalog.DevicePlugins && gates[string(catalog.Accelerators)]:
		warn("the kubelets offer each card twice, as %s and, by the gate Accelerators, as %s: use the first only, or set `featureGates: {Accelerators: false}`",
			m.Resource(), catalog.Accelerators.Resource())
	}
	if !b.Minor.Has(catalog.DiscoveryHash) {
		warn("kubeadm join cannot check the certificate of the API server: add workers on networks only that you trust")
	}
}

// seesCards reports whether a host has cards, whether or not Kubernetes shall have them.
func (b *builder) seesCards() bool {
	return slices.ContainsFunc(b.hosts, func(h *host) bool { return len(machine.Cards(b.Inventory, h.Facts)) > 0 })
}
