package session

import (
	"context"
	"errors"
	"slices"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/inventory"
)

// ExcludeFailed excludes the workers that failed in a run or were lost, and gathers the facts of the other hosts again.
// failed is the run's error. It is returned if the story cannot go on.
func (s *Session) ExcludeFailed(ctx context.Context, result *run.Result, failed error) error {
	unfinished := s.unfinishedWorkers(result)
	if ctx.Err() != nil || s.controlPlaneFailed(failed) {
		return failed
	}
	others := slices.DeleteFunc(s.RemainingHosts(), func(h inventory.Host) bool { return slices.Contains(unfinished, h.ID()) })
	if err := s.GatherAllFacts(ctx, others); err != nil || ctx.Err() != nil {
		return errors.Join(failed, err)
	}
	if len(unfinished) == 0 && len(s.RemainingHosts()) == len(others) {
		return failed
	}
	s.exclude(unfinished, failed)
	return nil
}

// unfinishedWorkers lists the workers with unfinished steps. A worker that was not drained because another one failed is included,
// one that only waited for a control plane is not.
func (s *Session) unfinishedWorkers(r *run.Result) []string {
	waited := slices.ContainsFunc(r.Steps, func(step run.StepResult) bool { return s.IsPlane(step.Host) && step.Outcome == run.Failed })
	var out []string
	for _, step := range r.Steps {
		unfinished := step.Outcome == run.Failed || step.Outcome != run.Done && !waited
		if unfinished && !s.IsPlane(step.Host) && !slices.Contains(out, step.Host) {
			out = append(out, step.Host)
		}
	}
	return out
}

// controlPlaneFailed reports whether a control plane itself failed. Nodes that are not ready, are full or lack GPUs do
// not count, as an excluded worker may be the cause.
func (s *Session) controlPlaneFailed(err error) bool {
	return slices.ContainsFunc(reason.All(err), func(e *reason.Error) bool {
		return e.ID != reason.NodeNotReady && e.ID != reason.NodePressure && e.ID != reason.GPUNotAllocatable && (e.Host == "" || s.IsPlane(e.Host))
	})
}

// errorsOf returns the errors of these hosts. What others waited for in vain is planned again.
func errorsOf(hosts []string, err error) error {
	var out []error
	for _, e := range reason.All(err) {
		if slices.Contains(hosts, e.Host) {
			out = append(out, e)
		}
	}
	return errors.Join(out...)
}

// RemainingHosts returns the hosts with facts, in the inventory's order. Excluded hosts are not among them.
func (s *Session) RemainingHosts() []inventory.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []inventory.Host
	for _, h := range s.Inventory.Hosts {
		if s.Facts[h.ID()] != nil {
			out = append(out, h)
		}
	}
	return out
}

// onHosts calls look for all hosts at the same time. If the story tolerates it, workers that fail are excluded, as are
// those that fail in a step.
func (s *Session) onHosts(ctx context.Context, hosts []inventory.Host, look func(inventory.Host) error) error {
	var ids []string
	var lost error
	err := Each(hosts, func(h inventory.Host) error {
		err := look(h)
		if err == nil || !s.TolerateWorkers || h.IsControlPlane() || ctx.Err() != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		ids, lost = append(ids, h.ID()), errors.Join(lost, err)
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, lost)
	}
	s.exclude(ids, lost)
	return nil
}

// GatherAllFacts gathers the facts of the hosts again, all at the same time.
func (s *Session) GatherAllFacts(ctx context.Context, hosts []inventory.Host) error {
	return s.onHosts(ctx, hosts, func(h inventory.Host) error { return s.GatherFacts(ctx, h.ID()) })
}

// exclude removes hosts from the session. failed has the reasons.
func (s *Session) exclude(ids []string, failed error) {
	failed = errorsOf(ids, failed)
	s.Excluded = errors.Join(s.Excluded, failed)
	for _, id := range ids {
		s.mu.Lock()
		delete(s.Facts, id)
		s.mu.Unlock()
		e := event.Event{Host: id, Kind: event.Warning, Text: id + " is excluded; the other hosts are made ready"}
		for _, why := range reason.All(failed) {
			if why.Host == id {
				e.Reason = string(why.ID)
			}
		}
		s.Tell(e)
	}
}

// TellExcluded lists the steps of the shown plan that are not done because their hosts were excluded.
func (s *Session) TellExcluded(shown *graph.Graph) {
	why := map[string]reason.ID{}
	for _, e := range reason.All(s.Excluded) {
		why[e.Host] = e.ID
	}
	for _, step := range shown.Steps {
		if id, out := why[step.Host]; out {
			s.Tell(event.Event{Host: step.Host, Step: step.ID, Kind: event.StepSkip, Reason: string(id),
				Text: "not begun, because " + step.Host + " is excluded",
			})
		}
	}
}
