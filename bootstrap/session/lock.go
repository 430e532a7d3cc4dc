package session

import (
	"context"
	"errors"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// OpenToChange is Open for stories that change something. It ends as soon as a control plane reports that another kgpu
// holds the cluster's lock. A worker that fails is excluded if mayExclude agrees. mayExclude may be called
// concurrently, and is nil if no worker may be missing. Control planes may be missing as long as a majority is there.
func OpenToChange(ctx context.Context, o Options, hosts []inventory.Host, mayExclude func(inventory.Host, error) bool) (*Session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := New(o)
	err := s.Meet(hosts, func(h inventory.Host) error {
		err := s.ConnectAndGather(ctx, h)
		if !h.IsControlPlane() {
			if err != nil && ctx.Err() == nil && mayExclude != nil && mayExclude(h, err) {
				s.Disconnect(h.ID())
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		busy := s.LockedError()
		if busy != nil {
			cancel(busy)
		}
		return busy
	})
	if busy, ok := errors.AsType[*reason.Error](context.Cause(ctx)); ok && busy.ID == reason.HostBusy {
		err = busy // the other hosts were told to stop
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// AnotherAtWork begins the messages about another kgpu that holds the cluster's lock.
const AnotherAtWork = "another run of kgpu is at work on this cluster: "

// LockedError is the error that another kgpu holds the cluster's lock; nil if none does.
func (s *Session) LockedError() error {
	id, _ := s.LockedPlane()
	if id == "" {
		return nil
	}
	return &reason.Error{ID: reason.HostBusy, Host: id, Detail: AnotherAtWork + s.DescribeHolder()}
}

// DescribeHolder describes the lock's holder, and what runs on the hosts that have facts; empty if nobody holds the lock.
func (s *Session) DescribeHolder() string {
	_, f := s.LockedPlane()
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

// DescribeWork describes who is changing the cluster, or a leftover run; empty if there is neither.
func (s *Session) DescribeWork() string {
	if text := s.DescribeHolder(); text != "" {
		return text
	}
	var now []string
	for _, h := range s.leftoverHosts() {
		now = append(now, h.ID()+": "+s.Facts[h.ID()].Run.Step)
	}
	if len(now) == 0 {
		return ""
	}
	return "a run goes on whose kgpu has ended; now " + strings.Join(now, ", ")
}

// Locked calls work while it holds the cluster's lock.
func (s *Session) Locked(ctx context.Context, work func(context.Context) error) error {
	return s.engine().Locked(ctx, s.lockPlanes(), s.Command, work)
}

// OnPlanes connects to the control planes and calls work while it holds the cluster's lock.
func OnPlanes(ctx context.Context, o Options, work func(context.Context, *Session) error) error {
	s, err := OpenToChange(ctx, o, o.Inventory.ControlPlanes(), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if cp := s.AdminPlane().ID(); s.Facts[cp].ControlPlane == nil {
		return &reason.Error{ID: reason.ClusterMissing, Host: cp, Detail: "there is no cluster on this host"}
	}
	return s.Locked(ctx, func(ctx context.Context) error { return work(ctx, s) })
}
