package session

import (
	"os"
	"slices"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// TestSkew: a clock is wrong only by what the time of the question does not explain.
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

// TestSlowFactsAreTold: the user is told when facts are late and when they have come, and nothing if they are in time.
func TestSlowFactsAreTold(t *testing.T) {
	before := slowFacts
	t.Cleanup(func() { slowFacts = before })
	answer, err := os.ReadFile("../facts/testdata/worker.txt")
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	var events event.Recorder
	o := Options{Inventory: &inventory.Inventory{}, Run: "r", Events: event.SinkFunc(func(e event.Event) {
		events.Emit(e)
		if e.Kind == event.Wait && e.Millis == 0 {
			close(waits)
		}
	})}
	for _, name := range []string{"cp1", "w1"} {
		h := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
			if name == "w1" {
				<-waits // what hangs ends when it was told of
			}
			_, _ = e.Stdout.Write(answer)
			return 0
		}}).Host()
		h.Name = name
		o.Inventory.Hosts = append(o.Inventory.Hosts, h)
	}
	slowFacts = time.Millisecond
	s, err := Open(t.Context(), o, o.Inventory.Hosts[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slowFacts = time.Hour
	if err := s.ConnectAndGather(t.Context(), o.Inventory.Hosts[0]); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range events.Events() {
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

// TestEnginesShareABudget: a host has one budget of bytes for a run, however many engines the run uses.
func TestEnginesShareABudget(t *testing.T) {
	s := New(Options{Inventory: &inventory.Inventory{}})
	defer s.Close()
	if first := s.engine().Budget; first == nil || s.engine().Budget != first {
		t.Error("an engine has a budget of its own")
	}
}

// TestFenceIsAboveThatOfTheFacts: a lock's fencing number is greater than any in the facts, except that of a lying
// host.
func TestFenceIsAboveThatOfTheFacts(t *testing.T) {
	s := New(Options{Inventory: &inventory.Inventory{}})
	defer s.Close()
	s.Facts = map[string]*facts.Host{"cp": {Fence: 7}, "w1": {Fence: 1795181111}, "w2": {}, "w3": {Fence: 1<<63 - 1}}
	if got := s.engine().Fence; got != 1795181111 {
		t.Errorf("the number is %d", got)
	}
}
