package proposal

import (
	"cmp"
	"slices"

	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/inventory"
)

const onlyHost = "it is the only host"

// chooseControlPlane chooses a host and sets why: one with a control plane, else, of those that are large enough, one
// with the fewest cards, as a control plane does not use them; then the one with the most memory, then the first.
func chooseControlPlane(in []*candidate) *candidate {
	order := slices.Clone(in)
	slices.SortStableFunc(order, func(a, b *candidate) int {
		return cmp.Or(
			one(b.Facts.ControlPlane != nil)-one(a.Facts.ControlPlane != nil),
			one(largeEnough(b))-one(largeEnough(a)),
			cmp.Compare(len(a.Facts.NVIDIA.Cards), len(b.Facts.NVIDIA.Cards)),
			-cmp.Compare(memory(a), memory(b)),
		)
	})
	best := order[0]
	best.why = why(best, in)
	return best
}

func largeEnough(c *candidate) bool { return preflight.BigEnough(inventory.ControlPlane, c.Facts) }

// memory is in GiB, because firmware takes different amounts from the same modules.
func memory(c *candidate) int64 { return GiB(c.Facts.MemoryKiB) }

// one is 1 for what is so, else 0.
func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// why says by which rule a host was chosen.
func why(best *candidate, in []*candidate) string {
	switch {
	case len(in) == 1:
		return onlyHost
	case best.Facts.ControlPlane != nil:
		return "it is one already"
	}
	rivals := sameAs(in, best, largeEnough)
	small := ""
	if len(rivals) < len(in) {
		small = " (others are too small for it)"
	}
	fewest := sameAs(rivals, best, func(c *candidate) int { return len(c.Facts.NVIDIA.Cards) })
	among := "without cards"
	if len(best.Facts.NVIDIA.Cards) > 0 {
		among = "with the fewest cards"
	}
	switch {
	case len(rivals) == 1:
		return "it is the only host that is large enough for it"
	case len(fewest) == 1:
		return "it is the only host " + among + small
	case len(sameAs(fewest, best, memory)) == 1:
		return "it has the most memory of the hosts " + among + small
	}
	return "it was named first of the hosts " + among + " that have the most memory" + small
}

// sameAs returns the hosts with the same value of what as one of them.
func sameAs[T comparable](in []*candidate, one *candidate, what func(*candidate) T) []*candidate {
	return slices.DeleteFunc(slices.Clone(in), func(c *candidate) bool { return what(c) != what(one) })
}
