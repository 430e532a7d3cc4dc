package session

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
)

// TestSessionOfThreeControlPlanes: the lock is taken on a majority of the control planes, and the cluster is asked
// where an API server answers.
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
	if first := machine.SetOf(s.Inventory, s.Facts).First.ID(); first != "cp1" {
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

// told keeps the texts of events.
type told []string

func (t *told) Emit(e event.Event) { *t = append(*t, e.Text) }

// TestControlPlanesThatAreAway: a majority that has the cluster goes on without the others, and says so. Without a cluster, or with
// less, nothing begins; one that refuses who logs in is not away.
func TestControlPlanesThatAreAway(t *testing.T) {
	silent := &reason.Error{ID: reason.SSHUnreachable, Detail: "no answer"}
	for _, c := range []struct {
		name string
		away map[string]error
		has  []string // control planes with a cluster
		want reason.ID
		says string
	}{
		{"nobody", nil, nil, "", ""},
		{"one of three", map[string]error{"cp1": silent}, []string{"cp2", "cp3"}, "", "cp1 is not reached: 2 of 3 control planes go on without it"},
		{"one, and there is no cluster", map[string]error{"cp1": silent}, nil, reason.SSHUnreachable, ""},
		{"two of three", map[string]error{"cp1": silent, "cp3": silent}, []string{"cp2"}, reason.ClusterQuorumLost, ""},
		{"its key is another", map[string]error{"cp1": &reason.Error{ID: reason.SSHHostKeyMismatch}}, []string{"cp2", "cp3"}, reason.SSHHostKeyMismatch, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var hosts []inventory.Host
			for _, name := range []string{"cp1", "cp2", "cp3", "w1"} {
				hosts = append(hosts, inventory.Host{Name: name, Address: name, Role: inventory.ControlPlane})
			}
			hosts[3].Role = inventory.Worker
			var heard told
			s := New(Options{Inventory: &inventory.Inventory{Hosts: hosts}, Events: &heard})
			defer s.dialer.Close()
			for _, id := range c.has {
				s.Facts[id] = &facts.Host{ControlPlane: &facts.ControlPlane{}}
			}
			var away absent
			var errs []error
			for _, h := range hosts {
				errs = append(errs, away.take(h, c.away[h.ID()]))
			}
			err := errors.Join(append(errs, s.without(&away))...)
			if (err == nil) != (c.want == "") || err != nil && !errors.Is(err, &reason.Error{ID: c.want}) {
				t.Errorf("%v", err)
			}
			if text := strings.Join(heard, "\n"); text != c.says {
				t.Errorf("it says %q", text)
			}
		})
	}
	var away absent
	if err := away.take(inventory.Host{Name: "w1", Role: inventory.Worker}, silent); err == nil {
		t.Error("a worker is not needed")
	}
}

// TestOneControlPlaneIsEnough: what needs only one control plane goes on with the first that is not away, and says who is; it does not
// pass by one that refuses who logs in.
func TestOneControlPlaneIsEnough(t *testing.T) {
	silent, another := &reason.Error{ID: reason.SSHUnreachable, Detail: "no answer"}, &reason.Error{ID: reason.SSHHostKeyMismatch}
	for _, c := range []struct {
		name string
		errs map[string]error
		want error
		says string
	}{
		{"all are there", nil, nil, ""},
		{"the first is away", map[string]error{"cp1": silent}, nil, "cp1 is not reached: going on with cp2"},
		{"two are away", map[string]error{"cp1": silent, "cp2": silent}, nil, "cp1 is not reached: going on with cp3\ncp2 is not reached: going on with cp3"},
		{"all are away", map[string]error{"cp1": silent, "cp2": silent, "cp3": silent}, silent, ""},
		{"its key is another", map[string]error{"cp1": another}, another, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said told
			var hosts []inventory.Host
			for _, name := range []string{"cp1", "cp2", "cp3"} {
				hosts = append(hosts, inventory.Host{Name: name, Address: name, Role: inventory.ControlPlane})
			}
			s := New(Options{Inventory: &inventory.Inventory{Hosts: hosts}, Events: &said})
			defer s.dialer.Close()
			err := s.meetOne(func(h inventory.Host) error { return c.errs[h.ID()] })
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if got := strings.Join(said, "\n"); got != c.says {
				t.Errorf("it says %q, want %q", got, c.says)
			}
		})
	}
}
