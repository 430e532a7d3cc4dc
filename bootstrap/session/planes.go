package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// AdminPlane is the control plane on which kubectl runs: a connected one, if possible one whose API server answered. It
// is a zero Host if the inventory has no control plane.
func (s *Session) AdminPlane() inventory.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	admin := machine.AdminPlane(s.Inventory, s.Facts)
	if s.hosts[admin.ID()] != nil {
		return admin
	}
	for _, h := range s.Inventory.ControlPlanes() {
		if s.hosts[h.ID()] != nil {
			return h
		}
	}
	return admin
}

// ConnectPlane connects to the first control plane that is not away, and tells the user which are. One that answers, and is not who it
// was or lets nobody in, ends that: somebody has to look. If all are away, it returns all their errors.
func (s *Session) ConnectPlane(ctx context.Context) error {
	return s.meetOne(func(h inventory.Host) error {
		_, err := s.Connect(ctx, h)
		return err
	})
}

// meetOne calls meet for one control plane after the other until one is not away.
func (s *Session) meetOne(meet func(inventory.Host) error) error {
	planes := s.Inventory.ControlPlanes()
	if len(planes) == 0 {
		planes = []inventory.Host{{}} // unreachable
	}
	var errs []error
	for _, h := range planes {
		err := meet(h)
		if err != nil && isAway(err) {
			errs = append(errs, err)
			continue
		}
		for i, gone := range errs {
			id := planes[i].ID()
			s.Tell(event.Event{Host: id, Kind: event.Warning, Reason: string(reason.All(gone)[0].ID), Text: fmt.Sprintf("%s is not reached: going on with %s", id, h.ID())})
		}
		return err
	}
	return errors.Join(errs...)
}

// planes returns the IDs of all control planes.
func (s *Session) planes() (ids []string) {
	for _, h := range s.Inventory.ControlPlanes() {
		ids = append(ids, h.ID())
	}
	return ids
}

// IsPlane reports whether a host is a control plane.
func (s *Session) IsPlane(id string) bool { return slices.Contains(s.planes(), id) }

// lockPlanes are the control planes on which the lock is taken: a majority, so that two runs have at least one in
// common. Connected ones come first.
func (s *Session) lockPlanes() []string {
	silent := func(id string) bool { return s.hosts[id] == nil }
	connected := slices.DeleteFunc(s.planes(), silent)
	ids := append(connected, slices.DeleteFunc(s.planes(), func(id string) bool { return !silent(id) })...)
	return ids[:min(len(ids), len(ids)/2+1)]
}

// AnyPlane reports whether the facts of any control plane fulfil a condition.
func (s *Session) AnyPlane(told func(*facts.Host) bool) bool {
	return slices.ContainsFunc(s.planes(), func(id string) bool { return s.Facts[id] != nil && told(s.Facts[id]) })
}

// LockedPlane returns a control plane on which another kgpu holds the cluster's lock, with its facts; nil if there is none.
func (s *Session) LockedPlane() (id string, f *facts.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.planes() {
		if f := s.Facts[id]; f != nil && f.LockHolder != nil {
			return id, f
		}
	}
	return "", nil
}
