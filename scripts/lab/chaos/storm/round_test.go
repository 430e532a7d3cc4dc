package storm

import (
	"os/exec"
	"testing"
	"time"
)

// quiet is a round whose run of kgpu was just started, on one host.
func quiet() *round {
	return &round{
		Storm:   &Storm{Lab: &Lab{Hosts: []string{"w1"}, address: map[string]string{"w1": "10.0.0.1"}}, Tally: newTally()},
		logs:    map[string]*hostLog{"w1": newHostLog(&Lab{}, "w1")},
		struck:  map[string]bool{},
		session: &session{connected: map[string]bool{}, follows: map[string]bool{}, attached: map[string]bool{}},
	}
}

func TestWhenPointsComeBy(t *testing.T) {
	step := Ref{"w1", "kube/packages"}
	point := func(p Phase, after time.Duration) Point { return Point{step, p, after} }
	r := quiet()
	log := r.logs["w1"]
	check := func(when string, before map[Ref]bool, want ...Point) {
		t.Helper()
		for _, p := range []Point{
			{Ref{Host: "w1"}, Connect, 0}, point(Begin, 0), point(During, 0), point(During, time.Hour), point(End, 0), point(Between, 0), point(Between, time.Hour),
		} {
			expected := false
			for _, w := range want {
				expected = expected || w == p
			}
			if got := r.comesBy(p, before); got != expected {
				t.Errorf("%s: %s comes by: %v", when, p, got)
			}
		}
	}
	connect := Point{Ref{Host: "w1"}, Connect, 0}
	check("at the start", nil)
	r.session.hear([]byte(`{"run":"2-a","event":"connect","host":"10.0.0.1"}`))
	check("connected", nil)

	// A former run's batch, which this run has not found yet.
	log.line("1-z-1", []string{"B", "kube/packages", "17"}, time.Now())
	check("a former batch", nil, connect)
	r.session.hear([]byte(`{"run":"2-a","event":"wait","host":"10.0.0.1","step":"kube/packages","text":"a former run (1-z-1, by me) is still at work here"}`))
	check("attached", nil, connect, point(Begin, 0), point(During, 0))
	if r.session.attachments() != 1 {
		t.Errorf("%d attachments", r.session.attachments())
	}
	log.line("1-z-1", []string{"D", "kube/packages", "0", "5", "", ""}, time.Now())
	check("just done", nil, point(During, 0), point(During, time.Hour), point(End, 0), point(Between, 0))
	check("done", map[Ref]bool{step: true}, point(Between, 0))

	// A batch of the run's own is followed from its first step on.
	r = quiet()
	log = r.logs["w1"]
	r.session.hear([]byte(`{"run":"2-a","event":"warning"}`))
	log.line("2-a-1", []string{"B", "kube/packages", "17"}, time.Now())
	check("its own batch", nil, point(Begin, 0), point(During, 0))
	log.line("2-a-1", []string{"D", "kube/packages", "1", "5", "STEP_FAILED", ""}, time.Now())
	check("failed", nil)
}

// TestOnlyStepsAtWorkAreHit: a kill that came after the end of a step did not strike it.
func TestOnlyStepsAtWorkAreHit(t *testing.T) {
	for name, c := range map[string]struct {
		end  bool
		hits int
		left int
	}{"at work": {false, 1, 0}, "done": {true, 0, 1}} {
		r := quiet()
		r.Out = t.Output()
		r.session.cmd = exec.Command("sleep", "1000")
		r.session.ended = make(chan struct{})
		if err := r.session.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { _ = r.session.cmd.Wait(); close(r.session.ended) }()
		r.session.run = "2-a"
		r.logs["w1"].line("2-a-1", []string{"B", "os/modules", "17"}, time.Now())
		if c.end {
			r.logs["w1"].line("2-a-1", []string{"D", "os/modules", "0", "5", "", ""}, time.Now())
		}
		if !r.kill(Hit{Point: Point{Ref{"w1", "os/modules"}, Begin, 0}, Fault: Kill, Must: true}) {
			t.Fatal("it was not killed")
		}
		if got := len(r.Tally.Hit[Kill]); got != c.hits || len(r.passed) != c.left || r.Tally.Faults[Kill].Injected != 1 {
			t.Errorf("%s: %d steps hit, %d to come again, %d kills", name, got, len(r.passed), r.Tally.Faults[Kill].Injected)
		}
	}
}

// TestRunThatEndedIsNotKilled: a kill of kgpu that comes too late is none.
func TestRunThatEndedIsNotKilled(t *testing.T) {
	r := quiet()
	r.session.cmd = exec.Command("true")
	r.session.ended = make(chan struct{})
	if err := r.session.cmd.Run(); err != nil {
		t.Fatal(err)
	}
	close(r.session.ended)
	if r.kill(Hit{Fault: Kill}) || r.Tally.Faults[Kill].Injected != 0 {
		t.Error("a run that ended by itself counts as killed")
	}
}

// TestKillsLeaveRoomForThoseThatMustHit: what must hit the next step goes first.
func TestKillsLeaveRoomForThoseThatMustHit(t *testing.T) {
	r := quiet()
	r.before = chains([]Ref{{"w1", "os/packages"}, {"w2", "os/packages"}, {"w1", "os/modules"}, {"w1", "os/sysctl"}})
	other := Hit{Fault: Kill, Point: Point{Ref{"w1", "os/packages"}, During, 0}}
	must := Hit{Fault: Kill, Point: Point{Ref{"w1", "os/modules"}, Begin, 0}, Must: true}
	later := Hit{Fault: Power, Point: Point{must.Point.Ref, During, time.Second}, Must: true}
	r.pending = []Hit{other, must}
	log := r.logs["w1"]
	for _, c := range []struct {
		begins string
		want   bool
	}{{"os/packages", true}, {"os/modules", false}, {"os/sysctl", false}} {
		log.line("1-1", []string{"B", c.begins, "17"}, time.Now())
		if got := r.heldBack(other); got != c.want {
			t.Errorf("during %s it is held back: %v", c.begins, got)
		}
		r.pending[1] = later
		if r.heldBack(other) {
			t.Errorf("during %s it waits for one that does not strike at once", c.begins)
		}
		r.pending[1] = must
		if r.heldBack(must) || r.heldBack(Hit{Fault: Power}) {
			t.Errorf("during %s: what must not wait is held back", c.begins)
		}
		log.line("1-1", []string{"D", c.begins, "0", "5", "", ""}, time.Now())
	}
}

// TestOneFaultAtATimeOnAHost: the next one waits, a kill of kgpu does not.
func TestOneFaultAtATimeOnAHost(t *testing.T) {
	r := quiet()
	w1 := Point{Ref{"w1", "os/packages"}, During, 0}
	r.struck["w2"] = true
	if r.heldBack(Hit{Fault: Dpkg, Point: w1}) {
		t.Error("a fault waits for that of another host")
	}
	r.struck["w1"] = true
	if !r.heldBack(Hit{Fault: Dpkg, Point: w1}) {
		t.Error("a fault does not wait")
	}
	if r.heldBack(Hit{Fault: Kill, Point: w1}) {
		t.Error("a kill waits")
	}
}
