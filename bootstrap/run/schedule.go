package run

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// task is a step on its way.
type task struct {
	step  *graph.Step
	needs []*task // of the same graph

	outcome     Outcome
	backingOff  bool // another try is due later
	tries       int
	paused      time.Duration // between its tries
	interrupted bool
	took        time.Duration
	batch       string        // that it was last handed to
	err         *reason.Error // why it failed
}

func (t *task) ended() bool { return t.outcome != Pending && t.outcome != Running }

// dependsOn reports whether t needs the failed step, or one that was left out because of it.
func (t *task) dependsOn(failed *task) bool {
	return slices.ContainsFunc(t.needs, func(need *task) bool { return need == failed || need.outcome == Skipped })
}

// schedule knows what may run next. Hosts wait in next for what the others achieve; whatever changes wakes them.
type schedule struct {
	engine *Engine
	tasks  []*task            // in the graph's order
	hosts  map[string][]*task // the same, by host
	lock   *lock              // without which nothing begins; nil: none is needed

	mu      sync.Mutex
	changed *sync.Cond
	active  int              // batches that run
	serial  map[string]*task // word → the step that has it
	stopped bool
	outputs graph.Outputs
}

func newSchedule(e *Engine, g *graph.Graph) *schedule {
	s := &schedule{engine: e, hosts: map[string][]*task{}, serial: map[string]*task{}, outputs: graph.Outputs{}}
	s.changed = sync.NewCond(&s.mu)
	known := make(map[graph.Ref]*task, len(g.Steps))
	for _, step := range g.Steps {
		t := &task{step: step, outcome: Pending}
		for _, need := range step.Needs {
			if n := known[need]; n != nil {
				t.needs = append(t.needs, n)
			}
		}
		known[step.Ref] = t
		s.tasks = append(s.tasks, t)
		s.hosts[step.Host] = append(s.hosts[step.Host], t)
	}
	return s
}

// next waits until a batch may start on the host and takes it; nil: nothing will ever start there again.
func (s *schedule) next(host string) []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var told blocker
	for !s.stopped && s.anyPending(host) {
		if s.active < s.engine.limit() && s.lock.isConfirmed() {
			if chain := s.chain(host); len(chain) > 0 {
				s.take(chain)
				return chain
			}
		}
		if o, text := s.blockerOf(host); o.task != nil && o != told {
			s.emit(o.task, event.Event{Kind: event.Wait, Text: text})
			told = o
		}
		s.changed.Wait()
	}
	return nil
}

func (s *schedule) anyPending(host string) bool {
	return slices.ContainsFunc(s.hosts[host], func(t *task) bool { return t.outcome == Pending })
}

// chain is the longest run of the host's next steps that needs no news from elsewhere. Where a step waits for another
// host, a single later one may go first, so that the waiting one gets its turn as soon as it can.
func (s *schedule) chain(host string) []*task {
	var chain []*task
	in := map[*task]bool{}
	overtaking := false
	for _, t := range s.hosts[host] {
		if t.outcome != Pending {
			continue
		}
		if !s.mayFollow(t, in) {
			if len(chain) > 0 {
				break
			}
			overtaking = true
			continue
		}
		chain, in[t] = append(chain, t), true
		if overtaking {
			break
		}
	}
	return chain
}

// mayFollow reports whether t can run after the steps in a batch, without news from elsewhere.
func (s *schedule) mayFollow(t *task, in map[*task]bool) bool {
	if t.backingOff || t.step.Mutex != "" && (len(in) > 0 || s.serial[t.step.Mutex] != nil) {
		return false
	}
	return !slices.ContainsFunc(t.needs, func(need *task) bool {
		return need.outcome != Done && (!in[need] || t.step.LateInput != nil)
	})
}

// blocker is what a host waits for: it is told when it becomes another one, not for each of many steps that end.
type blocker struct {
	task *task // that could be next
	kind string
}

// blockerOf finds the host's first step that waits for others, and says for whom. Pauses between tries are told when they
// begin.
func (s *schedule) blockerOf(host string) (blocker, string) {
	for _, t := range s.hosts[host] {
		if t.outcome != Pending || t.backingOff {
			continue
		}
		open := slices.DeleteFunc(slices.Clone(t.needs), func(need *task) bool { return need.outcome == Done })
		far := slices.DeleteFunc(slices.Clone(open), func(need *task) bool { return need.step.Host == host })
		switch holder := s.serial[t.step.Mutex]; {
		case len(far) > 1:
			return blocker{t, "steps"}, fmt.Sprintf("for %s: %s, and %d more", far[0].step.Host, far[0].step.ID, len(far)-1)
		case len(far) == 1:
			return blocker{t, "steps"}, fmt.Sprintf("for %s: %s", far[0].step.Host, far[0].step.ID)
		case len(open) > 0: // on this host, and before this step
		case !s.lock.isConfirmed():
			return blocker{t, "lock"}, "for the lock on the cluster, which " + s.lock.whyUnconfirmed()
		case holder != nil:
			return blocker{t, "word"}, fmt.Sprintf("for %s: %s, one host at a time", holder.step.Host, holder.step.ID)
		case s.active >= s.engine.limit():
			return blocker{t, "turn"}, fmt.Sprintf("for its turn: as many hosts as may are at work (%d)", s.active)
		}
	}
	return blocker{}, ""
}

func (s *schedule) take(chain []*task) {
	s.active++
	for _, t := range chain {
		t.outcome = Running
		if t.step.Mutex != "" {
			s.serial[t.step.Mutex] = t
		}
	}
}

// release says that a batch of next's is over.
func (s *schedule) release() { s.change(func() { s.active-- }) }

// cancel lets nothing new start.
func (s *schedule) cancel() { s.change(func() { s.stopped = true }) }

func (s *schedule) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed.Broadcast()
}

// set changes the outcome of a step that was taken, and gives its word to others.
func (s *schedule) set(t *task, o Outcome) {
	t.outcome = o
	if s.serial[t.step.Mutex] == t {
		delete(s.serial, t.step.Mutex)
	}
}

func (s *schedule) knownOutputs() graph.Outputs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.outputs)
}

// done says that t ended well. Who waits for it hears of it after the event is out.
func (s *schedule) done(t *task, outputs map[string][]byte) {
	s.emit(t, event.Event{Kind: event.StepDone, Millis: t.took.Milliseconds(), Text: t.step.Title})
	s.change(func() {
		s.outputs[t.step.Ref] = outputs
		s.set(t, Done)
	})
}

// reach is how far a failure goes.
type reach bool

const (
	stepOnly  reach = false // what needs the step cannot run
	wholeHost reach = true  // nothing more can run on the host either
)

// failed says that t ended badly: what that concerns is left out. The graph's order lets one pass do.
func (s *schedule) failed(t *task, err *reason.Error, r reach) {
	s.emit(t, event.Event{Kind: event.Error, Reason: string(err.ID), Millis: t.took.Milliseconds(), Text: err.What(), Exit: err.Exit})
	s.change(func() {
		t.err = err
		s.set(t, Failed)
		for _, other := range s.tasks {
			if other.ended() || !other.dependsOn(t) && (r == stepOnly || other.step.Host != t.step.Host) {
				continue
			}
			s.set(other, Skipped)
			s.emit(other, event.Event{Kind: event.StepSkip, Reason: string(err.ID), Text: "not begun, because " + t.step.String() + " failed"})
		}
	})
}

// again lets t be tried once more after a pause.
func (s *schedule) again(t *task, pause time.Duration) {
	s.change(func() {
		t.backingOff = true
		s.set(t, Pending)
	})
	time.AfterFunc(pause, func() { s.change(func() { t.backingOff = false }) })
}

// putBack makes those tasks pending that the host did not get to.
func (s *schedule) putBack(tasks []*task) {
	s.change(func() {
		for _, t := range tasks {
			if t.outcome == Running {
				s.set(t, Pending)
			}
		}
	})
}

func (s *schedule) emit(t *task, ev event.Event) {
	ev.Host, ev.Step = t.step.Host, t.step.ID
	s.engine.emit(ev)
}
