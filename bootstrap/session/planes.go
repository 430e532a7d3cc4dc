package session

import (
	"context"
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// AdminPlane is the control plane where the cluster is asked: one whose API server answers, as far as they have told, and that is
// connected, if any is. Every inventory that can be loaded has one; of another it is no host, which no connection leads to.
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

// ConnectPlane connects to the first control plane that can be reached, and asks it nothing. The error is that of the last.
func (s *Session) ConnectPlane(ctx context.Context) error {
	planes := s.Inventory.ControlPlanes()
	if len(planes) == 0 {
		planes = []inventory.Host{{}} // which cannot be reached
	}
	var err error
	for _, h := range planes {
		if _, err = s.Connect(ctx, h); err == nil {
			return nil
		}
	}
	return err
}

// planes are the IDs of all control planes.
func (s *Session) planes() (ids []string) {
	for _, h := range s.Inventory.ControlPlanes() {
		ids = append(ids, h.ID())
	}
	return ids
}

// IsPlane reports whether a host is a control plane.
func (s *Session) IsPlane(id string) bool { return slices.Contains(s.planes(), id) }

// lockPlanes are the control planes on which the cluster is held: a majority, so that two runs meet on one of them at least, and
// those that are connected first.
func (s *Session) lockPlanes() []string {
	silent := func(id string) bool { return s.hosts[id] == nil }
	connected := slices.DeleteFunc(s.planes(), silent)
	ids := append(connected, slices.DeleteFunc(s.planes(), func(id string) bool { return !silent(id) })...)
	return ids[:min(len(ids), len(ids)/2+1)]
}

// AnyPlane reports whether a control plane has told something.
func (s *Session) AnyPlane(told func(*facts.Host) bool) bool {
	return slices.ContainsFunc(s.planes(), func(id string) bool { return s.Facts[id] != nil && told(s.Facts[id]) })
}

// Holder is what a control plane on which another kgpu holds the cluster has told, and its ID; nil: none says so.
func (s *Session) Holder() (id string, f *facts.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.planes() {
		if f := s.Facts[id]; f != nil && f.LockHolder != nil {
			return id, f
		}
	}
	return "", nil
}
