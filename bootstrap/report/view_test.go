package report

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/report/live"
)

// watched is a view on an emulated terminal, of which the clock is that of the events.
type watched struct {
	*View
	*emulator
	clock time.Time
}

func watch(t *testing.T, width, height int, detail Detail) *watched {
	w := &watched{emulator: newEmulator(t, width, height)}
	w.View = newView(live.NewScreen(w.emulator), detail)
	w.size = func() (int, int) { return w.width, w.height }
	w.now = func() time.Time { return w.clock }
	return w
}

func (w *watched) Write(p []byte) (int, error) { return w.View.Write(p) }

// tell draws when time has passed.
func (w *watched) tell(events ...event.Event) {
	for _, e := range events {
		if !e.Time.Equal(w.clock) {
			w.draw()
		}
		w.clock = e.Time
		w.Emit(e)
	}
	w.draw()
}

// The moments of a fleet's run that are looked at.
var moments = []struct {
	name   string
	second int
}{{"looking", 2}, {"middle", 40}, {"gates", 68}, {"failed", 88}, {"end", 1000}}

// until is how many events there are up to that second.
func until(events []event.Event, second int) int {
	n := slices.IndexFunc(events, func(e event.Event) bool { return e.Time.After(fleetBegins.Add(time.Duration(second) * time.Second)) })
	if n < 0 {
		return len(events)
	}
	return n
}

func TestFrames(t *testing.T) {
	for _, hosts := range []int{1, 3, 40, 200} {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			w := watch(t, size[0], size[1], Normal)
			events := fleet(hosts)
			for _, m := range moments {
				now := until(events, m.second)
				w.tell(events[:now]...)
				events = events[now:]
				golden(t, fmt.Sprintf("view/%d-hosts-%dx%d-%s.txt", hosts, size[0], size[1], m.name), w.seen())
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if text := w.all(); strings.Count(text, "apt-get failed (exit status") != 1 || !strings.Contains(text, "    | E: Unable to correct problems") {
				t.Errorf("the failure is not told once, in:\n%s", text)
			}
		}
	}
}

// Where the terminal gets another size, the picture does, and nothing of the former one is left. Terminals break lines that
// are too long for them now.
func TestResize(t *testing.T) {
	w := watch(t, 100, 30, Normal)
	events := fleet(3)
	w.tell(events[:until(events, 40)]...)
	for _, size := range [][2]int{{60, 20}, {31, 20}, {120, 40}, {12, 6}, {80, 24}} {
		w.resize(size[0], size[1])
		w.draw()
		if n := strings.Count(w.seen(), "kgpu up"); n != 1 {
			t.Errorf("%d pictures at %d×%d:\n%s", n, size[0], size[1], w.seen())
		}
	}
}

// What is printed meanwhile comes whole, above the picture, and a question below everything.
func TestOthersPrint(t *testing.T) {
	w := watch(t, 80, 24, Normal)
	events := fleet(1)
	w.tell(events[:4]...)
	fmt.Fprint(w, "half a ")
	w.draw()
	if strings.Contains(w.seen(), "half") {
		t.Errorf("half a line is shown:\n%s", w.seen())
	}
	fmt.Fprint(w, "line\nanother\nType yes to go on: ")
	w.Ask()
	w.tell(event.Event{Time: fleetBegins, Kind: event.Warning, Text: "meanwhile"})
	if !strings.HasSuffix(w.seen(), "half a line\nanother\nType yes to go on:\n") {
		t.Errorf("asked:\n%s", w.seen())
	}
	_, _ = w.emulator.Write([]byte("yes\n")) // the terminal's echo
	w.Answered()
	w.draw()
	contains(t, w.seen(), "Type yes to go on: yes\n 0:00.0       warning: meanwhile\nkgpu up inventory.yaml")
	w.Leave("left")
	fmt.Fprint(w, "and this")
	must(t, w.Close())
	if text := w.seen(); !strings.HasSuffix(text, "\nleft\nand this\n") || strings.Count(text, "kgpu up") != 1 {
		t.Errorf("left:\n%s", text)
	}
}

// The output of the steps scrolls above the picture where it is wanted, and is not repeated when a step fails.
func TestVerboseView(t *testing.T) {
	w := watch(t, 80, 24, Verbose)
	w.tell(fleet(1)...)
	text := w.all()
	contains(t, text, "connected after 80ms", "| Reading package lists...", "done after")
	if n := strings.Count(text, "| E: Unable to correct problems"); n != 1 {
		t.Errorf("the output is shown %d times:\n%s", n, text)
	}
}

// Events from everywhere, while others print and the terminal is drawn: nothing is lost and nothing is torn.
func TestViewOfManyAtOnce(t *testing.T) {
	w := watch(t, 80, 24, Normal)
	w.Emit(event.Event{Kind: event.Begin, Text: "up"})
	stop := make(chan os.Signal)
	var all, follower sync.WaitGroup
	follower.Go(func() { w.follow(stop) })
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				w.Emit(event.Event{Host: fmt.Sprint("h", i), Step: fmt.Sprint("s", j), Kind: event.StepStart})
				w.Emit(event.Event{Host: fmt.Sprint("h", i), Kind: event.Warning, Text: "careful"})
				fmt.Fprintf(w, "printed %d by %d\n", j, i)
			}
		})
	}
	all.Wait()
	must(t, w.Close())
	follower.Wait()
	for _, what := range []string{"warning: careful\n", "printed "} {
		if n := strings.Count(w.all(), what); n != 400 {
			t.Errorf("%d of 400 %q", n, what)
		}
	}
}

func TestViewReturnsTheWriteError(t *testing.T) {
	v := newView(live.NewScreen(full{}), Normal)
	v.size = func() (int, int) { return 80, 24 }
	v.Emit(event.Event{Kind: event.Warning, Text: "x"})
	if err := v.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close returned %v", err)
	}
}

// The emulator fails on whatever a view must not send.
func TestNothingInAViewIsObeyed(t *testing.T) {
	w := watch(t, 80, 24, Verbose)
	w.tell(event.Event{Kind: event.Begin, Text: "up" + evil})
	w.tell(event.Event{Kind: event.Plan, Plan: []event.Planned{{Host: "h" + evil, Step: "s" + evil, Title: "words" + evil, Reason: evil, Needs: []event.Ref{{Host: evil, Step: evil}}}}})
	for _, k := range []event.Kind{event.Connect, event.Command, event.StepStart, event.Wait, event.Log, event.StepDone, event.StepSkip, event.Proof, event.Warning, event.Error, event.Result} {
		for _, step := range []string{"", "s" + evil} {
			w.tell(event.Event{Host: "h" + evil, Step: step, Kind: k, Reason: "R" + evil, Text: evil + "words"})
		}
	}
	contains(t, w.all(), "words")
}
