package session

import (
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
)

// TestSessionOfThreeControlPlanes: the lock is taken on a majority of the control planes, and the cluster is asked
// where an API server answers. The inventory's check still allows only one control plane.
func TestSessionOfThreeControlPlanes(t *testing.T) {
	var hosts []inventory.Host
	for _, name := range []string{"w1", "cp2", "cp1", "cp3"} {
		hosts = append(hosts, inventory.Host{Name: name, Address: name, Role: inventory.ControlPlane})
	}
	hosts[0].Role = inventory.Worker
	s := New(Options{Inventory: &inventory.Inventory{Hosts: hosts}})
	defer s.dialer.Close()
	check := func(when, admin string, lock ...string) {
		t.Helper()
		if got := s.AdminPlane().ID(); got != admin {
			t.Errorf("%s: %s is asked, want %s", when, got, admin)
		}
		if got := s.lockPlanes(); !slices.Equal(got, lock) {
			t.Errorf("%s: held on %q, want %q", when, got, lock)
		}
	}
	check("before anything is known", "cp2", "cp2", "cp1")
	s.hosts["cp1"], s.hosts["cp3"] = &remote.Host{}, &remote.Host{}
	check("when the first is away", "cp1", "cp1", "cp3")
	s.hosts["cp2"] = &remote.Host{}
	s.Facts["cp2"], s.Facts["cp1"] = &facts.Host{}, &facts.Host{ControlPlane: &facts.ControlPlane{}}
	s.Facts["cp3"] = &facts.Host{ControlPlane: &facts.ControlPlane{}, Cluster: &facts.Cluster{}, LockHolder: &facts.LockHolder{Who: "ada@laptop"}}
	check("when one answers", "cp3", "cp2", "cp1")
	if first := machine.FirstPlane(s.Inventory, s.Facts).ID(); first != "cp1" {
		t.Errorf("the first is %s", first)
	}
	if id, _ := s.LockedPlane(); id != "cp3" || s.LockedError() == nil {
		t.Errorf("%q has it, busy: %v", id, s.LockedError())
	}
	if !s.IsPlane("cp3") || s.IsPlane("w1") {
		t.Error("who is a control plane")
	}
	for _, h := range s.Inventory.ControlPlanes() {
		delete(s.hosts, h.ID()) // no connections
	}
}
