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

// A host has one budget for all that it tells a run, whatever number of engines the run takes.
func TestEnginesShareABudget(t *testing.T) {
	s := New(Options{Inventory: &inventory.Inventory{}})
	defer s.Close()
	if first := s.engine().Budget; first == nil || s.engine().Budget != first {
		t.Error("an engine has a budget of its own")
	}
}

// A lock's number is greater than what any host has told of, unless that one lies.
func TestFenceOfTheFacts(t *testing.T) {
	s := New(Options{Inventory: &inventory.Inventory{}})
	defer s.Close()
	s.Facts = map[string]*facts.Host{"cp": {Fence: 7}, "w1": {Fence: 1795181111}, "w2": {}, "w3": {Fence: 1<<63 - 1}}
	if got := s.engine().Fence; got != 1795181111 {
		t.Errorf("the number is %d", got)
	}
}
