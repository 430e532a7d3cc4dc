package session

import (
	"context"
	"errors"
	"strings"

	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// OpenAlone is Open for stories that change something. It ends as soon as a control plane tells that somebody else holds the
// cluster's lock, whatever the other hosts are still busy with. It goes on without the workers whose loss the story can do with:
// lost is asked, perhaps by several at the same time; nil: it can do with none.
func OpenAlone(ctx context.Context, o Options, hosts []inventory.Host, lost func(inventory.Host, error) bool) (*Session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := New(o)
	err := Each(hosts, func(h inventory.Host) error {
		err := s.Meet(ctx, h)
		if !h.IsControlPlane() {
			if err != nil && ctx.Err() == nil && lost != nil && lost(h, err) {
				s.Drop(h.ID())
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		busy := s.Busy()
		if busy != nil {
			cancel(busy)
		}
		return busy
	})
	if busy, ok := errors.AsType[*reason.Error](context.Cause(ctx)); ok && busy.ID == reason.HostBusy {
		err = busy // the others were told to leave it
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// AtWork begins what is told of a cluster whose lock somebody else holds.
const AtWork = "another run of kgpu is at work on this cluster: "

// Busy is the error of a cluster that somebody else holds; nil: nobody does.
func (s *Session) Busy() error {
	id, _ := s.Holder()
	if id == "" {
		return nil
	}
	return &reason.Error{ID: reason.HostBusy, Host: id, Detail: AtWork + s.Other()}
}

// Other describes who holds the cluster, and what runs on the hosts as far as they have told; empty: nobody holds it.
func (s *Session) Other() string {
	_, f := s.Holder()
	if f == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var now []string
	for _, h := range s.Inventory.Hosts {
		if f := s.Facts[h.ID()]; f != nil && f.Run != nil && f.Run.Step != "" {
			now = append(now, h.ID()+": "+f.Run.Step)
		}
	}
	return printable.Join("; now ", f.LockHolder.Describe(f.Now), strings.Join(now, ", "))
}

// UnderWay describes who changes the cluster now, or what goes on of a run whose kgpu has ended; empty: nothing does.
func (s *Session) UnderWay() string {
	if text := s.Other(); text != "" {
		return text
	}
	var now []string
	for _, h := range s.stillAtWork() {
		now = append(now, h.ID()+": "+s.Facts[h.ID()].Run.Step)
	}
	if len(now) == 0 {
		return ""
	}
	return "a run goes on whose kgpu has ended; now " + strings.Join(now, ", ")
}

// Locked does work while no other kgpu can change the cluster.
func (s *Session) Locked(ctx context.Context, work func(context.Context) error) error {
	return s.engine().Locked(ctx, s.lockPlanes(), s.Command, work)
}

// OnPlanes looks at the control planes, and does work there while no other kgpu can change the cluster.
func OnPlanes(ctx context.Context, o Options, work func(context.Context, *Session) error) error {
	s, err := OpenAlone(ctx, o, o.Inventory.ControlPlanes(), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if cp := s.AdminPlane().ID(); s.Facts[cp].ControlPlane == nil {
		return &reason.Error{ID: reason.ClusterMissing, Host: cp, Detail: "there is no cluster on this host"}
	}
	return s.Locked(ctx, func(ctx context.Context) error { return work(ctx, s) })
}
