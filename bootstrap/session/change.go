package session

import (
	"context"
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
)

// Change is what a story does to a cluster. Run follows or stops a leftover run, then plans, asks the user and carries
// the plan out.
type Change struct {
	// Leftover deals with the leftover run of an earlier kgpu: (*Session).Attach or (*Session).Stop. It is nil if the
	// plan does not depend on it.
	Leftover func(*Session, context.Context) error
	Check    func(context.Context) error               // preflight, once before the first plan; may be nil
	Plan     func() (*graph.Graph, error)              // plans by the current facts
	Ask      func(context.Context, *graph.Graph) error // shows the plan; an error if the user declines
	Do       func(context.Context, *graph.Graph) error // carries the plan out; also called without steps

	Forgets bool // kgpu's files are removed from the hosts
}

// Run makes the change. As others may change the cluster until it is locked, facts and plan are renewed under the lock.
// If the new plan differs, the user is asked again. A plan without steps needs no lock.
func (c Change) Run(ctx context.Context, s *Session) error {
	if c.Leftover != nil && len(s.leftoverHosts()) > 0 { // a kgpu that holds the lock is reported at once
		if err := s.Locked(ctx, func(ctx context.Context) error { return c.Leftover(s, ctx) }); err != nil {
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
		now, err := c.replan(ctx, s, g)
		if err != nil {
			return err
		}
		return c.rounds(ctx, s, now)
	})
}

// rounds carries a plan out. While it says that more is to come, the hosts are looked at again, and what is planned then is
// carried out, too: the user has seen them named in the first plan. Who carries a round out asks about what only that one plans.
func (c Change) rounds(ctx context.Context, s *Session, g *graph.Graph) error {
	for {
		if err := c.Do(ctx, g); err != nil || len(g.Rounds) == 0 {
			return err
		}
		if err := s.GatherAllFacts(ctx, s.RemainingHosts()); err != nil {
			return err
		}
		next, err := c.Plan()
		switch {
		case err != nil:
			return err
		case len(next.Rounds) >= len(g.Rounds):
			return fmt.Errorf("a round of the change did not bring the cluster on: %s is still to come", g.Rounds[0])
		case next.Empty():
			return nil
		}
		s.Tell(event.Event{Kind: event.Warning, Text: "now comes " + g.Rounds[0]})
		s.TellSkipped(next)
		g = next
	}
}

// replan renews facts and plan under the lock.
func (c Change) replan(ctx context.Context, s *Session, before *graph.Graph) (*graph.Graph, error) {
	if err := s.GatherAllFacts(ctx, s.RemainingHosts()); err != nil {
		return nil, err
	}
	if c.Leftover != nil {
		if err := c.Leftover(s, ctx); err != nil {
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

// sameSteps reports whether two graphs have the same steps with the same reasons.
func sameSteps(a, b *graph.Graph) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y *graph.Step) bool { return x.Ref == y.Ref && x.Reason == y.Reason })
}

// TellSkipped emits an event for every skipped step.
func (s *Session) TellSkipped(g *graph.Graph) {
	for _, skipped := range g.Skipped {
		why := event.Satisfied
		if skipped.Unselected {
			why = event.Unselected
		}
		s.Tell(event.Event{Host: skipped.Host, Step: skipped.ID, Kind: event.StepSkip, Reason: why, Text: skipped.Reason})
	}
	for _, w := range g.MergedWarnings() {
		s.Tell(event.Event{Kind: event.Warning, Text: w})
	}
}
