package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// watches lets another kgpu watch the machines and returns when it has looked at all of them.
func (f *fleet) watches(t *testing.T, ctx context.Context, leader string, silence time.Duration, left func()) (*fleet, chan error) {
	t.Helper()
	other := f.another("watcher").quick()
	other.HeartbeatTimeout = silence
	other.Hosts = map[string]Host{}
	var hosts []*eavesdropper
	for id, h := range f.Hosts {
		e := eavesdrop(h)
		hosts = append(hosts, e)
		other.Hosts[id] = e
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Watch(ctx, []string{leader}, left) }()
	for _, e := range hosts {
		e.await("looked")
	}
	return other, ended
}

// begin executes steps, and sends how that ended.
func (f *fleet) begin(ctx context.Context, steps ...*graph.Step) chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := f.Execute(ctx, graphOf(steps...))
		ended <- err
	}()
	return ended
}

func neverLeft(t *testing.T) func() {
	return func() { t.Error("a run with an operator counts as left") }
}

// awaitBegun returns when the fleet has told of so many steps that began.
func (f *fleet) awaitBegun(n int) {
	for len(f.told(event.StepStart)) < n {
		time.Sleep(time.Millisecond)
	}
}

// Who watches hears every step from the first of the current batches on, also of those that begin later, and the end.
func TestWatch(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	f.pipe(t, "go", "there")
	var other *fleet
	var ended chan error
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		done := f.begin(ctx,
			step("a", "one", "echo first >there; cat go"),
			step("b", "two", "echo quick", ref("a", "one")),
			step("a", "three", "true", ref("b", "two")),
		)
		f.read(t, "there")
		other, ended = f.watches(t, t.Context(), "a", time.Minute, neverLeft(t))
		f.open(t, "go").Close()
		return <-done
	})
	must(t, err)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var steps []string
	for _, e := range other.Recorder.Events() {
		if e.Kind == event.StepDone {
			steps = append(steps, e.Host+" "+e.Step)
		}
	}
	if want := []string{"a one", "b two", "a three"}; !slices.Equal(steps, want) {
		t.Errorf("heard of %q, want %q", steps, want)
	}
}

// A step that was at work before somebody watched is told with how long it has been.
func TestWatchTellsWhenAStepBegan(t *testing.T) {
	var heard event.Recorder
	g := &observer{engine: &Engine{Events: &heard}, host: "a"}
	g.begun("os/x", time.Now().Add(-time.Hour).UnixMilli())
	if e := heard.Events()[0]; e.Kind != event.StepStart || e.Millis < time.Hour.Milliseconds() {
		t.Errorf("heard %+v", e)
	}
	now := time.UnixMilli(1700000000000)
	for at, want := range map[int64]int64{1700000000000 - 5000: 5000, 1700000000000 - 999: 0, 1700000000000 + 5000: 0, 0: 0, -1 << 63: 0, 1<<63 - 1: 0} {
		if got := ago(at, now); got != want {
			t.Errorf("at %d: %d, want %d", at, got, want)
		}
	}
}

// The cluster is held as long as somebody holds it on one control plane.
func TestWatchOfSeveralControlPlanes(t *testing.T) {
	w := &watcher{engine: &Engine{}, planes: []string{"a", "b"}, locked: map[string]bool{}, left: neverLeft(t), unseen: 2, over: make(chan struct{})}
	a, b := &view{watcher: w, host: stage{id: "a"}}, &view{watcher: w, host: stage{id: "b"}}
	a.line("held")
	b.line("held")
	w.change(func() { w.unseen = 0 })
	a.line("free")
	if w.isOver() {
		t.Error("it is over, and b is held")
	}
	b.line("free")
	if !w.isOver() {
		t.Error("it is not over")
	}
}

// What ended before is history.
func TestWatchOfNothing(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	if _, err := f.Execute(t.Context(), graphOf(step("a", "one", "exit 3"))); err == nil {
		t.Fatal("it was to fail")
	}
	other, ended := f.watches(t, t.Context(), "a", time.Minute, neverLeft(t))
	if err := <-ended; err != nil || len(other.Recorder.Events()) > 0 {
		t.Errorf("%v, %v", err, other.Recorder.Events())
	}
}

// A step that fails decides how the watch ends, unless it was done after all.
func TestWatchOfFailures(t *testing.T) {
	f := newFleet(t, "a").quick()
	f.pipe(t, "there", "go")
	transient := step("a", "flaky", `[ -e tried ] || { touch tried; echo >there; cat go; exit 75; }`)
	transient.Retry = graph.Transient
	var ended chan error
	var other *fleet
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		done := f.begin(ctx, transient, step("a", "bad", "fail HOST_DISK_FULL 'no room'", ref("a", "flaky")))
		f.read(t, "there")
		other, ended = f.watches(t, t.Context(), "a", time.Minute, neverLeft(t))
		f.open(t, "go").Close()
		return <-done
	})
	got := <-ended
	if all := reason.All(got); reason.ExitStatus(got) != reason.ExitStatus(err) || len(all) != 1 || all[0].ID != reason.HostDiskFull || all[0].Step != "bad" {
		t.Errorf("%v, the run itself: %v", got, err)
	}
	if errs := other.told(event.Error); !slices.Equal(errs, []string{"error a bad no room"}) {
		t.Errorf("told %q", errs)
	}
}

// A host that goes down during a step is begun again by who began it, and what does not come about is told at the end.
func TestWatchOfAHostThatGoesDown(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	f.pipe(t, "there", "go")
	var ended chan error
	var other *fleet
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		done := f.begin(ctx, step("b", "one", "echo >there; cat go"))
		for try := range 2 {
			f.read(t, "there")
			if other == nil {
				other, ended = f.watches(t, t.Context(), "a", time.Minute, neverLeft(t))
			}
			other.awaitBegun(try + 1)
			f.machines["b"].PowerOff()
		}
		return <-done
	})
	got := <-ended
	if all := reason.All(got); reason.ExitStatus(got) != reason.ExitStatus(err) || len(all) != 1 || all[0].ID != reason.StepInterrupted {
		t.Errorf("%v, the run itself: %v", got, err)
	}
	if told := other.told(event.Error); len(told) != 1 {
		t.Errorf("told %q", told)
	}
}

// A killed kgpu leaves its batches: they are watched to their ends, and it is said that nobody steers them.
func TestWatchOfARunThatIsLeft(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	f.pipe(t, "there", "go")
	ctx, kill := context.WithCancel(t.Context())
	left := make(chan struct{})
	var ended chan error
	var other *fleet
	_ = f.Locked(ctx, []string{"a"}, "up", func(ctx context.Context) error {
		done := f.begin(ctx, step("b", "one", "echo >there; cat go"))
		f.read(t, "there")
		other, ended = f.watches(t, t.Context(), "a", 500*time.Millisecond, func() { close(left) })
		other.awaitBegun(1)
		kill()
		return <-done
	})
	<-left
	f.open(t, "go").Close()
	if err := <-ended; err != nil || !slices.Contains(other.told(event.StepDone), "step.done b one") {
		t.Errorf("%v, %q", err, other.told(event.StepDone))
	}
}

func TestWatchCancelled(t *testing.T) {
	f := newFleet(t, "a").quick()
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		watching, leave := context.WithCancelCause(t.Context())
		_, ended := f.watches(t, watching, "a", time.Minute, neverLeft(t))
		enough := errors.New("enough")
		leave(enough)
		if err := <-ended; !errors.Is(err, enough) {
			t.Errorf("%v", err)
		}
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("the run: %v", err)
	}
}

// What happens while the link of the one who watches is down is caught up with.
func TestWatchOverLostConnections(t *testing.T) {
	f := newFleet(t, "a").quick()
	lost := make(chan struct{})
	var ended chan error
	other := f.another("watcher").quick()
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		a := f.machines["a"]
		a.cutAfter = []int64{int64(len("held\nlooked\n"))}
		ran := make(chan error, 1)
		a.onLost = func() {
			_, err := f.Execute(ctx, graphOf(step("a", "one", "true")))
			ran <- err
			close(lost)
		}
		ended = make(chan error, 1)
		go func() { ended <- other.Watch(t.Context(), []string{"a"}, neverLeft(t)) }()
		<-lost
		return <-ran
	})
	must(t, err)
	if err := <-ended; err != nil || !slices.Contains(other.told(event.StepDone), "step.done a one") {
		t.Errorf("%v, %q", err, other.told(event.StepDone))
	}
}

// A host that is lost does not keep the watch when all else has ended.
func TestWatchWithoutAHost(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	b := &away{Host: f.Hosts["b"], asked: make(chan struct{})}
	f.machines["b"].cutAfter = []int64{int64(len("free\nlooked\n"))}
	other := f.another("watcher").quick()
	other.Hosts = map[string]Host{"a": f.Hosts["a"], "b": b}
	ended := make(chan error, 1)
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		go func() { ended <- other.Watch(t.Context(), []string{"a"}, neverLeft(t)) }()
		<-b.asked
		return ctx.Err()
	})
	must(t, errors.Join(err, <-ended))
}

// away is a host that never comes back.
type away struct {
	Host
	asked chan struct{}
}

func (a *away) Reconnect(ctx context.Context) error {
	close(a.asked)
	<-ctx.Done()
	return ctx.Err()
}
