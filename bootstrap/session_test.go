package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// A clock is wrong only by what the time that the question took does not explain.
func TestSkew(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ended := begun.Add(3 * time.Second)
	for clock, want := range map[time.Time]time.Duration{
		begun: 0, begun.Add(time.Second): 0, ended: 0,
		begun.Add(-time.Hour): -time.Hour, ended.Add(time.Hour): time.Hour,
	} {
		if got := skew(clock, begun, ended); got != want {
			t.Errorf("%s read from %s to %s: %s, want %s", clock, begun, ended, got, want)
		}
	}
}

// A host whose facts hang is told of while they do, and that it is over; one that answers is not told of.
func TestFactsThatHang(t *testing.T) {
	before := slowFacts
	t.Cleanup(func() { slowFacts = before })
	site, o := newSite(t, "cp1", "w1")
	waits := make(chan struct{})
	o.Events = event.SinkFunc(func(e event.Event) {
		site.Emit(e)
		if e.Kind == event.Wait && e.Millis == 0 {
			close(waits)
		}
	})
	site.looked = func(host string) bool {
		if host == "w1" {
			<-waits // what hangs ends when it was told of
		}
		return false
	}
	slowFacts = time.Millisecond
	s, err := open(t.Context(), o, o.Inventory.Hosts[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	slowFacts = time.Hour
	if err := s.meet(t.Context(), o.Inventory.Hosts[0]); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range site.Events() {
		if e.Kind == event.Wait {
			told = append(told, e.Host+" "+e.Text)
			if over := len(told) == 2; over != (e.Millis > 0) {
				t.Errorf("told %+v", e)
			}
		}
	}
	if want := []string{"w1 for its facts: it is busy, or its driver or docker hangs; giving up after 5m0s in all", "w1 for its facts"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

// A host has one budget for all that it tells a run, whatever number of engines the run takes.
func TestEnginesShareABudget(t *testing.T) {
	s := newSession(Options{Inventory: &inventory.Inventory{}})
	defer s.close()
	if first := s.engine().Budget; first == nil || s.engine().Budget != first {
		t.Error("an engine has a budget of its own")
	}
}

// A hold's number is greater than what any host has told of, unless that one lies.
func TestFenceOfTheFacts(t *testing.T) {
	s := newSession(Options{Inventory: &inventory.Inventory{}})
	defer s.close()
	s.facts = map[string]*facts.Host{"cp": {Fence: 7}, "w1": {Fence: 1795181111}, "w2": {}, "w3": {Fence: 1<<63 - 1}}
	if got := s.engine().Fence; got != 1795181111 {
		t.Errorf("the number is %d", got)
	}
}

// An inventory without a control plane cannot be loaded. A story of one all the same ends with an error.
func TestNoControlPlane(t *testing.T) {
	_, o := newSite(t, "cp1")
	o.Inventory.Hosts[0].Role = inventory.Worker
	if s, err := enter(t.Context(), o); err == nil {
		s.close()
		t.Error("the control plane of a cluster without one was reached")
	}
	if _, err := Plan(t.Context(), o); err == nil {
		t.Error("a cluster without a control plane is planned")
	}
}

// What kubeadm warns of on several hosts is told once in a run, with their names, when it is known of all of them; what only one
// warns of has its name.
func TestWarningsAreToldOnce(t *testing.T) {
	s, o := newSite(t, "cp1", "w1", "w2")
	s.warns = map[string]string{"cp1 cluster/init": "kubeadm: old\nkubeadm: Swap", "w1 cluster/join": "kubeadm: old", "w2 cluster/join": "kubeadm: old"}
	if err := Up(t.Context(), o, func(*graph.Graph) error { return nil }); err != nil {
		t.Fatal(err)
	}
	events := s.Events()
	var told []string
	for i, e := range events {
		if e.Kind == event.Warning && strings.Contains(e.Text, "kubeadm: ") {
			told = append(told, e.Host+e.Step+e.Text)
			if slices.ContainsFunc(events[i:], func(e event.Event) bool { return e.Kind == event.StepStart }) {
				t.Errorf("%q is told while steps are still to come", e.Text)
			}
		}
	}
	if want := []string{"cp1, w1, w2: kubeadm: old", "cp1: kubeadm: Swap"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}
