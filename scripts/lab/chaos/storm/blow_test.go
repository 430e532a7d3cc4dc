package storm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// striking is a round on a host at work on os/a. When its power goes, or it is told to reboot, its batch has time to tell
// the last.
func striking(t *testing.T, last string) *round {
	t.Helper()
	dir := t.TempDir()
	lab := "#!/bin/bash\nif [[ $3 != start ]]; then printf '" + last + "' >>" + dir + "/1-a-1/events; fi\n"
	if err := os.WriteFile(filepath.Join(dir, "lab"), []byte(lab), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "1-a-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1-a-1", "events"), []byte("B\tos/a\t17\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := quiet()
	r.ctx, r.Out, r.Lab.Program, r.session.run = t.Context(), t.Output(), filepath.Join(dir, "lab"), "1-a"
	r.logs["w1"].runs = func() string { return dir }
	if err := r.look(); err != nil {
		t.Fatal(err)
	}
	return r
}

// blowOf strikes, and returns when the fault is over.
func blowOf(t *testing.T, r *round, h Hit) {
	t.Helper()
	if !r.comesBy(h.Point, nil) || r.heldBack(h) {
		t.Fatalf("%s finds no occasion", h)
	}
	r.strike(h)
	r.faults.Wait()
	if err := r.failed(); err != nil {
		t.Fatal(err)
	}
	r.count()
}

// TestWhatAFaultOfAHostStrikes: a power cut has struck what did not end any more, a reboot what was at work when it was
// asked for. What must be struck, and was not, comes again.
func TestWhatAFaultOfAHostStrikes(t *testing.T) {
	const end, next = `D\tos/a\t0\t9\t\t\n`, `B\tos/b\t18\n`
	for _, c := range []struct {
		name, fault, last, struck string
		again                     bool
	}{
		{name: "in the step", fault: Power, struck: "os/a"},
		{name: "after the step", fault: Power, last: end, again: true},
		{name: "in the next step", fault: Power, last: end + next, struck: "os/b", again: true},
		{name: "reboot", fault: Reboot, struck: "os/a"},
		{name: "reboot that lets the step end", fault: Reboot, last: end + next, struck: "os/a"},
	} {
		for _, must := range []bool{true, false} {
			r := striking(t, c.last)
			h := Hit{Point: Point{Ref{"w1", "os/a"}, Begin, 0}, Fault: c.fault, Must: must}
			blowOf(t, r, h)
			var struck string
			for ref := range r.Tally.Hit[c.fault] {
				struck += ref.Step
			}
			if struck != c.struck || slices.Contains(r.passed, h) != (c.again && must) {
				t.Errorf("%s: it struck %q, and %v come again; want %q", c.name, struck, r.passed, c.struck)
			}
			// What a batch began while its host went down is not at work any more.
			if err := r.look(); err != nil || r.logs["w1"].running != "" {
				t.Errorf("%s: %q is at work, %v", c.name, r.logs["w1"].running, err)
			}
		}
	}
}

// TestPowerIsLostOnceInAStep: a host whose power goes again before anything was begun anew was in no step.
func TestPowerIsLostOnceInAStep(t *testing.T) {
	r := striking(t, "")
	blowOf(t, r, Hit{Point: Point{Ref{"w1", "os/a"}, Begin, 0}, Fault: Reboot})
	r.logs["w1"].done["os/z"] = time.Now().Add(-time.Minute)
	blowOf(t, r, Hit{Point: Point{Ref{"w1", "os/z"}, Between, 0}, Fault: Power})
	if !r.Tally.Struck(Reboot, "os/a") || r.Tally.Struck(Power, "os/a") {
		t.Errorf("struck: %v", r.Tally.Hit)
	}
}

// TestWhatMustBeStruckIsAtWork: others are content with a step that is just done.
func TestWhatMustBeStruckIsAtWork(t *testing.T) {
	r := striking(t, "")
	log := r.logs["w1"]
	log.line("1-a-1", []string{"D", "os/a", "0", "9", "", ""}, time.Now())
	h := Hit{Point: Point{Ref{"w1", "os/a"}, During, time.Hour}, Fault: Power}
	if !r.comesBy(h.Point, nil) || r.heldBack(h) {
		t.Error("a fault that may strike any time waits")
	}
	h.Must = true
	if !r.heldBack(h) {
		t.Error("a step that is done is struck")
	}
	log.line("1-a-1", []string{"B", "os/b", "18"}, time.Now())
	if !r.heldBack(h) {
		t.Error("the next step is struck in its place")
	}
}

// TestHostsGoDownBeforeKgpuIsKilled: of two that must strike a step, where both can.
func TestHostsGoDownBeforeKgpuIsKilled(t *testing.T) {
	at := Point{Ref{"w1", "os/a"}, Begin, 0}
	other, kill, down := Hit{Point: at, Fault: Power}, Hit{Point: at, Fault: Kill, Must: true}, Hit{Point: at, Fault: Reboot, Must: true}
	r := newRound(t.Context(), &Storm{Lab: &Lab{}}, []Hit{other, kill, down})
	if !slices.Equal(r.pending, []Hit{down, other, kill}) {
		t.Errorf("in this order: %v", r.pending)
	}
}

// TestWhatMustStrikeComesAgain: in the next rounds, at the begin of its step, until it was struck or all rounds are over.
func TestWhatMustStrikeComesAgain(t *testing.T) {
	step := func(id string) Point { return Point{Ref{"w1", id}, During, time.Second} }
	must := Hit{Number: 1, Point: step("os/a"), Fault: Power, Must: true}
	kill := Hit{Number: 2, Point: step("os/b"), Fault: Kill}
	cut := Hit{Number: 3, Point: step("os/b"), Fault: Cut}
	planned := Hit{Number: 4, Point: step("os/c"), Fault: Reboot, Must: true}
	sooner := must
	sooner.Point = Point{must.Point.Ref, Begin, 0}
	s := &Storm{Tally: newTally()}
	schedule := Schedule{Rounds: [][]Hit{{must, kill, cut}, {planned}}}
	left := []Hit{must, kill, cut}
	for _, c := range []struct {
		round int
		left  []Hit
		want  []Hit
	}{
		{0, nil, []Hit{must, kill, cut}},
		{1, left, []Hit{sooner, planned}},
		{2, left, []Hit{sooner, kill}},
	} {
		if got := s.hits(schedule, c.round, c.left, Least{Kills: 1}); !slices.Equal(got, c.want) {
			t.Errorf("round %d: %v, want %v", c.round, got, c.want)
		}
	}
	check := func(when, want string) {
		t.Helper()
		err := s.complete(schedule, Least{Kills: 1})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+want)) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
	check("nothing was struck", "power in os/a, reboot in os/c, 1 kills, of at least 1")
	s.Tally.inject(Kill)
	s.Tally.hit(Reboot, Ref{"cp1", "os/a"})
	s.Tally.hit(Reboot, Ref{"cp1", "os/c"})
	check("another fault", "power in os/a")
	if got := s.hits(schedule, 2, []Hit{sooner, planned}, Least{Kills: 1}); !slices.Equal(got, []Hit{sooner}) {
		t.Errorf("what was struck comes again: %v", got)
	}
	s.Tally.hit(Power, Ref{"w2", "os/a"})
	check("all was struck", "")
	if got := s.hits(schedule, 2, []Hit{sooner}, Least{Kills: 1}); len(got) != 0 {
		t.Errorf("there is more to do: %v", got)
	}
	only, err := schedule.Only(3)
	if err != nil || (&Storm{Tally: newTally()}).complete(only, Least{}) != nil {
		t.Errorf("what is not in the schedule is missed: %v", err)
	}
}
