// Package live is the picture of a run that changes in place on a terminal: who is at work on what, who waits for whom, and
// what is left on the longest way to the end. State hears events, Frame draws it as lines, and Screen puts the lines on a
// terminal. It expects events whose text is printable.
package live

import (
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// State is what the events so far say about a run. It is not safe for concurrent use.
type State struct {
	title   string
	began   time.Time
	ended   time.Time // zero: the run goes on
	planned bool      // a plan was told
	watches bool      // somebody else's run, of which no plan is told
	closing string    // why the run comes to its end before it is done; empty: it does not
	hosts   []*host   // in the order of the first plan, and then in which they were first heard of
	byID    map[string]*host
	steps   []*step // each behind those it needs
	byRef   map[event.Ref]*step
}

// New knows nothing yet.
func New() *State {
	return &State{byID: map[string]*host{}, byRef: map[event.Ref]*step{}}
}

// phase is where a step is.
type phase int

const (
	pending phase = iota
	running
	done
	failed
	leftOut
)

// step is one of a host's steps, as far as events tell.
type step struct {
	event.Ref
	title    string
	needs    []*step
	phase    phase
	began    time.Time
	reason   string // ID of the failure, or the words why it was left out
	wait     string // what it waits for, in the words of the event; empty: nothing
	progress progress
}

func (s *step) open() bool { return s.phase == pending || s.phase == running }

// host is a host and its steps.
type host struct {
	id        string
	connected bool
	steps     []*step   // in the order of the plans
	wait      string    // what the host as a whole waits for: its connection
	since     time.Time // when it last began, ended or left something
}

// Shown reports whether there is anything that is worth to stay on the screen: a step.
func (s *State) Shown() bool { return len(s.steps) > 0 }

// Close says that the run comes to its end before it is done, and why.
func (s *State) Close(why string) { s.closing = why }

// maxSteps bounds what hosts that name ever more steps can make the picture keep.
const maxSteps = 100_000

// Note takes in an event.
func (s *State) Note(e event.Event) {
	if s.began.IsZero() {
		s.began = e.Time
	}
	if e.Kind == event.Plan {
		s.plan(e)
		return
	}
	switch {
	case e.Kind == event.Begin:
		s.title = e.Text
		return
	case e.Kind == event.Result:
		s.ended = e.Time
		return
	case e.Host == "":
		s.watches = s.watches || e.Kind == event.Wait
		return
	}
	h := s.host(e.Host)
	if e.Step == "" {
		h.note(e)
		return
	}
	if e.Kind == event.StepSkip && !reason.Known(reason.ID(e.Reason)) {
		return // in order already: no step of this run
	}
	if t := s.step(e.Ref()); t != nil {
		t.note(e)
		switch e.Kind {
		case event.StepStart, event.StepDone, event.Error, event.StepSkip:
			h.since = e.Time
		}
		if e.Kind != event.StepSkip && e.Kind != event.Wait {
			h.wait = "" // it speaks
		}
	}
}

// plan makes its steps those that are to be done, again where they were done or failed before. A plan has a step behind
// those it needs: so have the lists, in which its steps go to the end.
func (s *State) plan(e event.Event) {
	if !s.planned {
		s.order(e)
	}
	s.planned = true
	again := map[*step]bool{}
	for _, p := range e.Plan {
		if t := s.byRef[p.Ref()]; t != nil {
			again[t] = true
		}
	}
	known := func(t *step) bool { return again[t] }
	s.steps = slices.DeleteFunc(s.steps, known)
	for _, h := range s.hosts {
		h.steps = slices.DeleteFunc(h.steps, known)
	}
	for _, p := range e.Plan {
		at := p.Ref()
		h := s.host(p.Host)
		t := s.byRef[at]
		if t != nil && again[t] {
			delete(again, t)
			*t = step{Ref: at}
			s.add(h, t)
		} else if t = s.step(at); t == nil {
			return
		}
		h.since, t.title = e.Time, p.Title
		for _, need := range p.Needs {
			if n := s.byRef[need]; n != nil {
				t.needs = append(t.needs, n)
			}
		}
	}
}

// order puts the hosts as the plan has them: before, each was where its connection came up.
func (s *State) order(e event.Event) {
	at := map[string]int{}
	for i, p := range slices.Backward(e.Plan) {
		at[p.Host] = i
	}
	place := func(h *host) int {
		if i, ok := at[h.id]; ok {
			return i
		}
		return len(e.Plan)
	}
	slices.SortStableFunc(s.hosts, func(a, b *host) int { return place(a) - place(b) })
}

func (s *State) host(id string) *host {
	h := s.byID[id]
	if h == nil {
		h = &host{id: id}
		s.byID[id] = h
		s.hosts = append(s.hosts, h)
	}
	return h
}

// step is the one of this name, a new one perhaps; nil: there are too many.
func (s *State) step(at event.Ref) *step {
	t := s.byRef[at]
	if t == nil && len(s.steps) < maxSteps {
		t = &step{Ref: at}
		s.byRef[at] = t
		s.add(s.host(at.Host), t)
	}
	return t
}

func (s *State) add(h *host, t *step) {
	s.steps, h.steps = append(s.steps, t), append(h.steps, t)
}

func (h *host) note(e event.Event) {
	switch e.Kind {
	case event.Connect:
		h.connected, h.wait = true, ""
	case event.Wait:
		h.wait = e.Text
		if e.Millis > 0 {
			h.wait = ""
		}
		h.since = e.Time
	case event.Command:
		h.wait = ""
	case event.Warning:
		if reason.Known(reason.ID(e.Reason)) {
			h.wait = "" // the run goes on without it
		}
	}
}

func (t *step) note(e event.Event) {
	switch e.Kind {
	case event.StepStart:
		began := e.Time.Add(-time.Duration(e.Millis) * time.Millisecond)
		t.phase, t.began, t.wait, t.progress = running, began, "", progress{}
		if e.Text != "" {
			t.title = e.Text
		}
	case event.StepDone:
		t.phase, t.wait = done, ""
	case event.StepSkip:
		t.phase, t.wait, t.reason = leftOut, "", strings.TrimPrefix(e.Text, "not begun, ")
	case event.Error:
		if e.Reason == string(reason.Cancelled) {
			return // it goes on, nobody looks
		}
		t.phase, t.wait, t.reason = failed, "", e.Reason
	case event.Log:
		t.wait = ""
		t.progress.note(e.Text)
	case event.Wait:
		t.waits(e)
	}
}

func (t *step) waits(e event.Event) {
	if t.wait = e.Text; e.Millis > 0 {
		t.wait = ""
	}
	if e.Reason != "" && t.phase == running {
		t.phase = pending // it ended badly, and is begun once more
	}
}
