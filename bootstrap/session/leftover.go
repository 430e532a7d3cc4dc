package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/inventory"
)

// Attach follows the runs that a former kgpu left on the hosts to their ends, and looks at those hosts and the cluster again.
func (s *Session) Attach(ctx context.Context) error {
	return s.followLeftover(ctx, (*run.Engine).Attach)
}

// Stop does so after it asked them to come to an end.
func (s *Session) Stop(ctx context.Context) error {
	return s.followLeftover(ctx, (*run.Engine).Stop)
}

// Watch follows what is at work on the hosts to its end and changes nothing. left is called when nobody steers it any more.
func (s *Session) Watch(ctx context.Context, left func()) error {
	return s.engine().Watch(ctx, s.planes(), left)
}

// stillAtWork are the hosts on which a run of a former kgpu goes on.
func (s *Session) stillAtWork() []inventory.Host {
	return slices.DeleteFunc(s.Known(), func(h inventory.Host) bool { return s.Facts[h.ID()].Run == nil })
}

func (s *Session) followLeftover(ctx context.Context, follow func(*run.Engine, context.Context, string, string) error) error {
	busy := s.stillAtWork()
	err := s.visit(ctx, busy, func(h inventory.Host) error {
		f, _ := s.Seen(h.ID())
		s.Tell(event.Event{
			Host: h.ID(), Step: f.Run.Step, Kind: event.Wait, Text: fmt.Sprintf("a former run (%s, by %s) is still at work here", f.Run.ID, f.Run.By),
		})
		// Its failure is not this run's: the host is looked at again, and what is missing is planned again.
		err := follow(s.engine(), ctx, h.ID(), f.Run.ID)
		if err != nil && ctx.Err() != nil {
			return err
		}
		return s.Look(ctx, h.ID())
	})
	if err != nil || len(busy) == 0 {
		return err
	}
	// What those runs did to the cluster, its control plane knows.
	return s.Look(ctx, s.AdminPlane().ID())
}

// mostUnreverted bounds what a host is believed that it could not take back.
const mostUnreverted = 50

// TellUnreverted warns of what hosts could not take back.
func (s *Session) TellUnreverted(result *run.Result) {
	for _, step := range result.Steps {
		s.tellUnreverted(step.Host, result.Outputs[step.Ref][plan.OutputLeft])
	}
}

// tellUnreverted does so for one host.
func (s *Session) tellUnreverted(host string, output []byte) {
	left := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, what := range left[:min(len(left), mostUnreverted)] {
		if what != "" {
			s.Tell(event.Event{Host: host, Kind: event.Warning, Text: "not taken back: " + printable.Short(what, 300)})
		}
	}
	if more := len(left) - mostUnreverted; more > 0 {
		s.Tell(event.Event{Host: host, Kind: event.Warning, Text: fmt.Sprintf("and %d more, which its log has", more)})
	}
}
