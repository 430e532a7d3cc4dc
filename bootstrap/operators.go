package bootstrap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// openAlone is open for stories that change something. It ends as soon as the control plane tells that somebody else holds
// the cluster, whatever the other hosts are still busy with.
func openAlone(ctx context.Context, o Options, hosts []inventory.Host) (*session, error) {
	return openAloneWithout(ctx, o, hosts, func(inventory.Host, error) bool { return false })
}

// openAloneWithout goes on without the workers whose loss the story can do with: lost is asked, perhaps by several at the
// same time.
func openAloneWithout(ctx context.Context, o Options, hosts []inventory.Host, lost func(inventory.Host, error) bool) (*session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := newSession(o)
	err := each(hosts, func(h inventory.Host) error {
		err := s.meet(ctx, h)
		if !h.IsControlPlane() {
			if err != nil && ctx.Err() == nil && lost(h, err) {
				s.drop(h.ID())
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		busy := s.busy()
		if busy != nil {
			cancel(busy)
		}
		return busy
	})
	if busy := (*reason.Error)(nil); errors.As(context.Cause(ctx), &busy) && busy.ID == reason.HostBusy {
		err = busy // the others were told to leave it
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

const atWork = "another run of kgpu is at work on this cluster: "

// busy is the error of a cluster that somebody else holds; nil: nobody does.
func (s *session) busy() error {
	id, _ := s.holder()
	if id == "" {
		return nil
	}
	return &reason.Error{ID: reason.HostBusy, Host: id, Detail: atWork + s.other()}
}

// other describes who holds the cluster, and what runs on the hosts as far as they have told; empty: nobody holds it.
func (s *session) other() string {
	_, f := s.holder()
	if f == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := f.Operator.Describe(f.Now)
	var now []string
	for _, h := range s.Inventory.Hosts {
		if f := s.facts[h.ID()]; f != nil && f.Run != nil && f.Run.Step != "" {
			now = append(now, h.ID()+": "+f.Run.Step)
		}
	}
	if len(now) > 0 {
		text += "; now " + strings.Join(now, ", ")
	}
	return text
}

// underWay describes who changes the cluster now, or what goes on of a run whose kgpu has ended; empty: nothing does.
func (s *session) underWay() string {
	if text := s.other(); text != "" {
		return text
	}
	var now []string
	for _, h := range s.stillAtWork() {
		now = append(now, h.ID()+": "+s.facts[h.ID()].Run.Step)
	}
	if len(now) == 0 {
		return ""
	}
	return "a run goes on whose kgpu has ended; now " + strings.Join(now, ", ")
}

// holding does work while no other kgpu can change the cluster.
func (s *session) holding(ctx context.Context, work func(context.Context) error) error {
	return s.engine().Holding(ctx, s.lockPlanes(), s.Command, work)
}

// changing carries out a graph that was designed and shown before the cluster was held. Somebody may have been at work
// meanwhile, so everything is looked at again and designed again: work is given the graph that holds now, which is shown
// where it is another one. A graph without steps needs no hold.
func (s *session) changing(ctx context.Context, graph *graph.Graph, design func(context.Context) (*graph.Graph, error), show func(*graph.Graph) error, work func(context.Context, *graph.Graph) error) error {
	if graph.Empty() {
		return work(ctx, graph)
	}
	return s.holding(ctx, func(ctx context.Context) error {
		if err := s.lookAtAll(ctx); err != nil {
			return err
		}
		now, err := design(ctx)
		if err != nil {
			return err
		}
		s.tellLeftOut(graph)
		if !sameSteps(graph, now) {
			s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Kind: event.Warning, Text: "the hosts have changed since the plan was made: this is the plan now"})
			s.skips(now)
			if err := show(now); err != nil {
				return err
			}
		}
		return work(ctx, now)
	})
}

// lookAtAll gathers the facts of the session's hosts once more.
func (s *session) lookAtAll(ctx context.Context) error {
	return s.visit(ctx, s.known(), func(h inventory.Host) error { return s.look(ctx, h.ID()) })
}

// sameSteps reports whether two graphs do the same on the same hosts, for the same reasons.
func sameSteps(a, b *graph.Graph) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y *graph.Step) bool { return x.Ref == y.Ref && x.Reason == y.Reason })
}
