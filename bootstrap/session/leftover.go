package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// Attach follows leftover runs of an earlier kgpu until they end, then gathers the facts of their hosts and of the
// cluster again.
func (s *Session) Attach(ctx context.Context) error {
	return s.followLeftover(ctx, (*run.Engine).Attach)
}

// Stop does the same, but first asks the runs to stop after their current steps.
func (s *Session) Stop(ctx context.Context) error {
	return s.followLeftover(ctx, (*run.Engine).Stop)
}

// Watch follows the runs on the hosts until they end, and changes nothing. abandoned is called when the kgpu that
// started them is gone.
func (s *Session) Watch(ctx context.Context, abandoned func()) error {
	return s.engine().Watch(ctx, s.planes(), abandoned)
}

// leftoverHosts returns the hosts on which a leftover run is still at work.
func (s *Session) leftoverHosts() []inventory.Host {
	return slices.DeleteFunc(s.RemainingHosts(), func(h inventory.Host) bool { return s.Facts[h.ID()].Run == nil })
}

// followLeftover lets follow wait for each leftover run, then gathers the facts again.
func (s *Session) followLeftover(ctx context.Context, follow func(*run.Engine, context.Context, string, string) error) error {
	busy := s.leftoverHosts()
	err := s.onHosts(ctx, busy, func(h inventory.Host) error {
		f, _ := s.FactsOf(h.ID())
		s.Tell(event.Event{
			Host: h.ID(), Step: f.Run.Step, Kind: event.Wait, Text: fmt.Sprintf("a former run (%s, by %s) is still at work here", f.Run.ID, f.Run.By),
		})
		// A failure of that run is not this run's: what is missing is planned again.
		err := follow(s.engine(), ctx, h.ID(), f.Run.ID)
		if err != nil && ctx.Err() != nil {
			return err
		}
		return s.GatherFacts(ctx, h.ID())
	})
	if err != nil || len(busy) == 0 {
		return err
	}
	// The control plane knows what those runs did to the cluster.
	return s.GatherFacts(ctx, s.AdminPlane().ID())
}

// maxUnreverted is how many unreverted changes are reported of a host.
const maxUnreverted = 50

// TellUnreverted warns of the changes that hosts could not revert.
func (s *Session) TellUnreverted(result *run.Result) {
	for _, step := range result.Steps {
		s.tellUnreverted(step.Host, result.Outputs[step.Ref][plan.OutputLeft])
	}
}

// tellUnreverted does so for one host.
func (s *Session) tellUnreverted(host string, output []byte) {
	changes := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, what := range changes[:min(len(changes), maxUnreverted)] {
		if what != "" {
			s.Tell(event.Event{Host: host, Kind: event.Warning, Text: "not taken back: " + printable.Short(what, 300)})
		}
	}
	if more := len(changes) - maxUnreverted; more > 0 {
		s.Tell(event.Event{Host: host, Kind: event.Warning, Text: fmt.Sprintf("and %d more, which its log has", more)})
	}
}
