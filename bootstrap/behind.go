package bootstrap

import (
	"context"
	"errors"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/inventory"
)

// carryOut runs what has to be done now. Where workers fail, or never come back, the cluster does without them: the other
// hosts are looked at again and what is left to do for them is planned anew, as `--limit` would, so that their nodes get
// ready and their cards are proven. It returns the graph that was carried out to its end; an error: there is none.
func (s *session) carryOut(ctx context.Context, g *graph.Graph) (*graph.Graph, error) {
	for {
		g.Agreed(s.drains)
		// The notebook takes a card: the proof deploys it when the Jobs, which want all of them, are done.
		result, err := s.engine().Execute(ctx, g.At(graph.First))
		if err == nil {
			return g, nil
		}
		behind := s.behind(result)
		if ctx.Err() != nil || s.controlPlaneFailed(err) {
			return nil, err
		}
		for id, lost := range s.lookAgain(ctx, behind) {
			behind = append(behind, id)
			err = errors.Join(err, lost)
		}
		if len(behind) == 0 || ctx.Err() != nil || slices.ContainsFunc(behind, s.isPlane) {
			return nil, err
		}
		s.leaveOut(behind, err)
		if g, err = s.plan(); err != nil {
			return nil, err
		}
	}
}

// behind lists the workers that did not do all they had to do. A node that is not drained, say, because the one before it
// failed, is among them; one that only waited for the control plane is not.
func (s *session) behind(r *run.Result) []string {
	waited := slices.ContainsFunc(r.Steps, func(step run.StepResult) bool { return s.isPlane(step.Host) && step.Outcome == run.Failed })
	var out []string
	for _, step := range r.Steps {
		left := step.Outcome == run.Failed || step.Outcome != run.Done && !waited
		if left && !s.isPlane(step.Host) && !slices.Contains(out, step.Host) {
			out = append(out, step.Host)
		}
	}
	return out
}

// controlPlaneFailed reports whether the control plane has a failure of its own. That nodes are not ready, are full or lack
// cards, may come from a worker that is gone.
func (s *session) controlPlaneFailed(err error) bool {
	return slices.ContainsFunc(reason.All(err), func(e *reason.Error) bool {
		return e.ID != reason.NodeNotReady && e.ID != reason.NodePressure && e.ID != reason.GPUNotAllocatable && (e.Host == "" || s.isPlane(e.Host))
	})
}

// lookAgain gathers the facts of all hosts but those, and returns why it could not, by host.
func (s *session) lookAgain(ctx context.Context, but []string) map[string]error {
	lost := map[string]error{}
	_ = each(s.known(), func(h inventory.Host) error {
		if slices.Contains(but, h.ID()) {
			return nil
		}
		if err := s.look(ctx, h.ID()); err != nil {
			s.mu.Lock()
			lost[h.ID()] = err
			s.mu.Unlock()
		}
		return nil
	})
	return lost
}

// concerning keeps what these hosts failed with: what others wait for in vain is planned again.
func concerning(hosts []string, err error) error {
	var out []error
	for _, e := range reason.All(err) {
		if slices.Contains(hosts, e.Host) {
			out = append(out, e)
		}
	}
	return errors.Join(out...)
}

// known are the hosts that the story goes on with.
func (s *session) known() []inventory.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []inventory.Host
	for _, h := range s.Inventory.Hosts {
		if s.facts[h.ID()] != nil {
			out = append(out, h)
		}
	}
	return out
}

// visit looks at hosts all at the same time, outside of steps. Workers that cannot be looked at any more are left out, as
// those are that fail in a step, where the story goes on without them.
func (s *session) visit(ctx context.Context, hosts []inventory.Host, look func(inventory.Host) error) error {
	var behind []string
	var lost error
	err := each(hosts, func(h inventory.Host) error {
		err := look(h)
		if err == nil || !s.goesOn || h.IsControlPlane() || ctx.Err() != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		behind, lost = append(behind, h.ID()), errors.Join(lost, err)
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, lost)
	}
	s.leaveOut(behind, lost)
	return nil
}

// leaveOut goes on without hosts. failed is why those are behind.
func (s *session) leaveOut(behind []string, failed error) {
	failed = concerning(behind, failed)
	s.left = errors.Join(s.left, failed)
	for _, id := range behind {
		s.mu.Lock()
		delete(s.facts, id)
		s.mu.Unlock()
		e := event.Event{Time: time.Now(), Run: s.Run, Host: id, Kind: event.Warning, Text: "going on without " + id + ": the other hosts are made ready"}
		for _, why := range reason.All(failed) {
			if why.Host == id {
				e.Reason = string(why.ID)
			}
		}
		s.Events.Emit(e)
	}
}

// tellLeftOut tells which steps of a plan that was shown are not begun, because their hosts were left out since.
func (s *session) tellLeftOut(shown *graph.Graph) {
	why := map[string]reason.ID{}
	for _, e := range reason.All(s.left) {
		why[e.Host] = e.ID
	}
	for _, step := range shown.Steps {
		if id, out := why[step.Host]; out {
			s.Events.Emit(event.Event{
				Time: time.Now(), Run: s.Run, Host: step.Host, Step: step.ID, Kind: event.StepSkip, Reason: string(id),
				Text: "not begun, because " + step.Host + " is left out",
			})
		}
	}
}
