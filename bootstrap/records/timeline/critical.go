package timeline

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/event"
)

// path finds the critical path: from the step that ended last, back to the one without whose end it could not have begun
// any sooner, and so on. That is, of the steps that it needs, of those before it on its host, and of those of the plans before
// its own, the one that ended last. What kgpu does on its own machine comes after everything.
func (b *builder) path() {
	var last *Bar
	for _, h := range b.model.Hosts {
		for _, bar := range h.Bars {
			if last == nil || bar.End > last.End || bar.End == last.End && bar.ended > last.ended {
				last = bar
			}
		}
	}
	for bar := last; bar != nil && !bar.Critical; bar = b.before(bar) {
		bar.Critical = true
		b.model.Path = append(b.model.Path, bar)
	}
	slices.Reverse(b.model.Path)
}

// before is the step that bar had to wait for; nil: none.
func (b *builder) before(bar *Bar) *Bar {
	var best *Bar
	consider := func(other *Bar) {
		told := other != nil && other.ended > 0 && other.ended < bar.begun // times may be the same, and clocks wrong
		if told && other.End <= bar.Start && (best == nil || other.End > best.End) {
			best = other
		}
	}
	for _, need := range b.planned[event.Ref{Host: bar.Host, Step: bar.Step}].Needs { // first: of two, the one that is needed
		consider(b.bars[need])
	}
	for _, other := range slices.Backward(b.hosts[bar.Host].Bars) {
		consider(other)
	}
	var begun int64 // its plan
	for _, at := range b.plans {
		if at <= bar.Start {
			begun = at
		}
	}
	for _, h := range b.model.Hosts {
		for _, other := range h.Bars {
			if bar.Host == "" || other.End <= begun {
				consider(other)
			}
		}
	}
	return best
}
