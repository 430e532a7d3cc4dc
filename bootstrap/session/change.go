package session

import (
	"context"
	"slices"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
)

// Change is what a story does to the cluster: Run follows what a former run left at work, plans, asks, and does it.
type Change struct {
	// Former ends what a kgpu that is gone left at work: (*Session).Attach or (*Session).Stop; nil: the plan does not mind it.
	Former func(*Session, context.Context) error
	Check  func(context.Context) error               // whether the hosts are fit for it, once, before there is a plan; nil: they are
	Plan   func() (*graph.Graph, error)              // what is to be done, by the facts
	Ask    func(context.Context, *graph.Graph) error // shows the plan; an error: nobody wants it
	Do     func(context.Context, *graph.Graph) error // carries it out, also one without steps

	Forgets bool // the hosts forget everything of kgpu
}

// Run makes the change. Somebody may be at work until the cluster is locked, so everything is looked at and planned again then: the
// plan that holds now is asked about too, where it is another one. A plan without steps needs no lock.
func (c Change) Run(ctx context.Context, s *Session) error {
	if c.Former != nil && len(s.stillAtWork()) > 0 { // who comes meanwhile is told at once, as during any work
		if err := s.Locked(ctx, func(ctx context.Context) error { return c.Former(s, ctx) }); err != nil {
			return err
		}
	}
	if c.Check != nil {
		if err := c.Check(ctx); err != nil {
			return err
		}
	}
	g, err := c.Plan()
	if err != nil {
		return err
	}
	s.TellSkipped(g)
	if err := c.Ask(ctx, g); err != nil {
		return err
	}
	if g.Empty() {
		return c.Do(ctx, g)
	}
	s.forgets = c.Forgets
	return s.Locked(ctx, func(ctx context.Context) error {
		now, err := c.again(ctx, s, g)
		if err != nil {
			return err
		}
		return c.Do(ctx, now)
	})
}

// again plans anew what was planned before the cluster was locked.
func (c Change) again(ctx context.Context, s *Session, before *graph.Graph) (*graph.Graph, error) {
	if err := s.LookAtAll(ctx, s.Known()); err != nil {
		return nil, err
	}
	if c.Former != nil {
		if err := c.Former(s, ctx); err != nil {
			return nil, err
		}
	}
	now, err := c.Plan()
	if err != nil {
		return nil, err
	}
	s.TellExcluded(before)
	if sameSteps(before, now) {
		return now, nil
	}
	s.Tell(event.Event{Kind: event.Warning, Text: "the hosts have changed since the plan was made: this is the plan now"})
	s.TellSkipped(now)
	return now, c.Ask(ctx, now)
}

// sameSteps reports whether two graphs do the same on the same hosts, for the same reasons.
func sameSteps(a, b *graph.Graph) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y *graph.Step) bool { return x.Ref == y.Ref && x.Reason == y.Reason })
}

// TellSkipped tells about the steps that have nothing to do.
func (s *Session) TellSkipped(g *graph.Graph) {
	for _, skipped := range g.Skipped {
		why := event.Satisfied
		if skipped.Unwanted {
			why = event.Unselected
		}
		s.Tell(event.Event{Host: skipped.Host, Step: skipped.ID, Kind: event.StepSkip, Reason: why, Text: skipped.Reason})
	}
	for _, w := range g.Told() {
		s.Tell(event.Event{Kind: event.Warning, Text: w})
	}
}
