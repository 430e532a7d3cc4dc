// Package timeline draws a run: its events become a model, and that a web page or a Chrome trace. It is pure: no clock, no
// files, no network.
package timeline

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// State is what became of a step.
type State string

// The states of a bar.
const (
	Done    State = "done"
	Failed  State = "failed"
	Running State = "running" // it has not ended, as far as the run told
)

// Model is a run as it is drawn. Times are milliseconds since the run begun.
type Model struct {
	Cluster   string    `json:"cluster,omitempty"`
	Run       string    `json:"run"`
	Command   string    `json:"command,omitempty"`
	Begun     time.Time `json:"begun"`
	Total     int64     `json:"total"`            // until the last event
	Reason    string    `json:"reason,omitempty"` // of the result; empty: the run has not told its end
	Text      string    `json:"text,omitempty"`   // of the result
	Fate      string    `json:"fate,omitempty"`   // of a run that has not told its end, where it is known: at work, killed, lost
	Hosts     []*Host   `json:"hosts"`
	Path      []*Bar    `json:"-"`               // the critical path, from its first step to its last
	Notes     []Note    `json:"notes,omitempty"` // warnings, proofs, and failures outside of steps
	Satisfied int       `json:"satisfied"`       // steps that had nothing to do
}

// Host is a row, or several where its steps overlap.
type Host struct {
	Name  string `json:"name"` // empty: the machine that kgpu ran on
	Lanes int    `json:"lanes"`
	Bars  []*Bar `json:"bars"`            // in the order of their beginnings
	Looks []Look `json:"looks,omitempty"` // what kgpu did there outside of steps: connections, questions
	Waits []Wait `json:"waits,omitempty"` // outside of steps
	Left  []Left `json:"left,omitempty"`  // steps that were not begun, because something failed
}

// Bar is a step on a host, with all its tries.
type Bar struct {
	Host     string   `json:"-"`
	Step     string   `json:"step"`
	Title    string   `json:"title,omitempty"`
	Why      string   `json:"why,omitempty"` // it was planned
	State    State    `json:"state"`
	Start    int64    `json:"start"`
	End      int64    `json:"end"`
	Lane     int      `json:"lane"`
	Critical bool     `json:"critical,omitempty"` // on the critical path
	Tries    int      `json:"tries"`
	Waits    []Wait   `json:"waits,omitempty"`  // in the step
	Reason   string   `json:"reason,omitempty"` // ID of its failure
	Text     string   `json:"text,omitempty"`   // of its failure
	Exit     *int     `json:"exit,omitempty"`
	Tail     []string `json:"tail,omitempty"` // the last lines that it printed
	Lines    int      `json:"lines"`          // that it printed

	begun, ended int // number of the event with which it did; ended is zero while it runs
}

// Wait is a time in which something was waited for.
type Wait struct {
	Start int64  `json:"start"`
	End   int64  `json:"end"`
	Step  string `json:"step,omitempty"` // that waits, or is waited in
	Text  string `json:"text"`

	reason string
	open   bool
}

// Look is a connection or a command outside of steps.
type Look struct {
	Start int64  `json:"start"`
	End   int64  `json:"end"`
	Text  string `json:"text"`
}

// Left is a step that was not begun.
type Left struct {
	Step string `json:"step"`
	Text string `json:"text"`
}

// Note is something that a run told beside its steps.
type Note struct {
	At     int64      `json:"at"`
	Kind   event.Kind `json:"kind"`
	Host   string     `json:"host,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Text   string     `json:"text"`
}

// tailLines is how much of a step's output is kept.
const tailLines = 15

// Of makes the model of a run from what it told, to its end or as far as it got.
func Of(events iter.Seq[event.Event], cluster string) (*Model, error) {
	b := &builder{
		model: &Model{Cluster: cluster},
		hosts: map[string]*Host{}, bars: map[event.Ref]*Bar{}, planned: map[event.Ref]event.Planned{},
	}
	for e := range events {
		if b.number == 0 {
			b.model.Run, b.model.Begun = e.Run, e.Time
		}
		b.add(e)
	}
	if b.number == 0 {
		return nil, errors.New("this run has told nothing yet: there is nothing to draw")
	}
	b.finish()
	return b.model, nil
}

// builder makes a model of events, one after the other.
type builder struct {
	model   *Model
	hosts   map[string]*Host
	bars    map[event.Ref]*Bar // the last one of each step
	planned map[event.Ref]event.Planned
	order   []string // hosts, as the plan has them
	plans   []int64  // when each plan was told: what was planned before is over then
	number  int      // of the event
	at      int64    // of the event before
	back    int64    // how far the clock was set back meanwhile, in all
}

func (b *builder) host(name string) *Host {
	h := b.hosts[name]
	if h == nil {
		h = &Host{Name: name}
		b.hosts[name] = h
		b.model.Hosts = append(b.model.Hosts, h)
	}
	return h
}

// setBack is how far the time of an event may be before that of the event before: more is a clock that was set.
const setBack = 1000

// time is when an event was told. Events come in order, whatever a clock that is set meanwhile says.
func (b *builder) time(e event.Event) int64 {
	at := e.Time.Sub(b.model.Begun).Milliseconds() + b.back
	if at < b.at-setBack {
		b.back += b.at - at
		at = b.at
	}
	b.at = max(b.at, at)
	return max(0, at)
}

func (b *builder) add(e event.Event) {
	b.number++
	at := b.time(e)
	e.Millis = max(0, e.Millis)
	b.model.Total = max(b.model.Total, at)
	ref := e.Ref()
	switch e.Kind {
	case event.Begin:
		b.model.Command = e.Text
	case event.Plan:
		b.plans = append(b.plans, at)
		for _, p := range e.Plan {
			b.host(p.Host)
			if !slices.Contains(b.order, p.Host) {
				b.order = append(b.order, p.Host)
			}
			b.planned[p.Ref()] = p
		}
	case event.Connect, event.Command:
		if e.Host != "" {
			text := e.Text
			if e.Kind == event.Connect {
				text = "connect"
			}
			h := b.host(e.Host)
			h.Looks = append(h.Looks, Look{max(0, at-e.Millis), at, text})
		}
	case event.StepStart:
		b.start(ref, at, e.Text)
	case event.Log:
		if bar := b.open(ref); bar != nil {
			closeWait(bar.Waits, at)
			bar.Tail = append(bar.Tail, e.Text)
			bar.Tail = bar.Tail[max(0, len(bar.Tail)-tailLines):]
			bar.Lines++
		}
	case event.Wait:
		b.wait(ref, e, at)
	case event.StepDone:
		b.end(ref, at, e, Done)
	case event.StepSkip:
		switch e.Reason {
		case "", event.Satisfied:
			b.model.Satisfied++
		case event.Unselected: // nobody wanted it
		default:
			h := b.host(e.Host)
			h.Left = append(h.Left, Left{e.Step, e.Text})
		}
	case event.Error:
		switch {
		case e.Step == "":
			b.note(e, at)
		case e.Reason == string(reason.Cancelled) && b.open(ref) != nil: // it goes on on its host
			bar := b.open(ref)
			bar.Reason, bar.Text = e.Reason, e.Text
		default:
			b.end(ref, at, e, Failed)
		}
	case event.Warning, event.Proof:
		b.note(e, at)
	case event.Result:
		b.model.Reason, b.model.Text = e.Reason, e.Text
	}
}

func (b *builder) note(e event.Event, at int64) {
	b.model.Notes = append(b.model.Notes, Note{at, e.Kind, e.Host, e.Reason, e.Text})
}

// open is the bar of a step that has begun and not ended.
func (b *builder) open(ref event.Ref) *Bar {
	if bar := b.bars[ref]; bar != nil && bar.State == Running {
		return bar
	}
	return nil
}

func (b *builder) start(ref event.Ref, at int64, title string) {
	h := b.host(ref.Host)
	closeWait(h.Waits, at)
	if bar := b.open(ref); bar != nil { // again
		bar.Tries++
		closeWait(bar.Waits, at)
		return
	}
	b.begin(h, ref, at, title)
}

func (b *builder) begin(h *Host, ref event.Ref, at int64, title string) *Bar {
	p := b.planned[ref]
	bar := &Bar{Host: ref.Host, Step: ref.Step, Title: cmp.Or(title, p.Title), Why: p.Reason, State: Running, Start: at, End: at, Tries: 1, begun: b.number}
	h.Bars = append(h.Bars, bar)
	b.bars[ref] = bar
	return bar
}

func (b *builder) end(ref event.Ref, at int64, e event.Event, state State) {
	bar := b.open(ref)
	if bar == nil { // its beginning was not heard
		bar = b.begin(b.host(ref.Host), ref, max(0, at-e.Millis), "")
	}
	bar.State, bar.End, bar.ended = state, max(at, bar.Start), b.number
	closeWait(bar.Waits, at)
	if state == Failed {
		bar.Reason, bar.Text, bar.Exit = e.Reason, e.Text, e.Exit
	}
}

// wait puts a wait into the step in which it is, or between the host's steps. One that is told again and again goes on.
func (b *builder) wait(ref event.Ref, e event.Event, at int64) {
	bar := b.open(ref)
	if bar == nil && e.Step == "" {
		bar = b.last(e.Host) // the whole host waits, in the step that it is at
	}
	waits := &b.host(e.Host).Waits
	if bar != nil {
		waits = &bar.Waits
	}
	if n := len(*waits); n > 0 {
		if w := &(*waits)[n-1]; w.open && w.Step == e.Step && w.reason == e.Reason && (e.Reason != "" || w.Text == e.Text) {
			w.End = max(at, w.Start)
			w.open = e.Millis == 0
			return
		}
	}
	closeWait(*waits, at)
	*waits = append(*waits, Wait{Start: max(0, at-e.Millis), End: at, Step: e.Step, Text: e.Text, reason: e.Reason, open: e.Millis == 0})
}

// last is the step that a host is at.
func (b *builder) last(host string) *Bar {
	for _, bar := range slices.Backward(b.host(host).Bars) {
		if bar.State == Running {
			return bar
		}
	}
	return nil
}

// closeWait ends the last wait, if it has not ended.
func closeWait(waits []Wait, at int64) {
	if n := len(waits); n > 0 && waits[n-1].open {
		waits[n-1].open, waits[n-1].End = false, max(at, waits[n-1].Start)
	}
}

// finish ends what has not ended, and finds what is only known at the end.
func (b *builder) finish() {
	for _, h := range b.model.Hosts {
		closeWait(h.Waits, b.model.Total)
		for _, bar := range h.Bars {
			if bar.State == Running {
				bar.End = b.model.Total
				closeWait(bar.Waits, b.model.Total)
			}
		}
		slices.SortStableFunc(h.Bars, func(a, b *Bar) int { return int(a.Start - b.Start) })
		h.Lanes = lanes(h.Bars)
		h.Looks = slices.DeleteFunc(h.Looks, func(l Look) bool { // a command that carries steps out is drawn by them
			return slices.ContainsFunc(h.Bars, func(bar *Bar) bool { return l.Start < bar.End && bar.Start < l.End })
		})
	}
	slices.SortStableFunc(b.model.Hosts, func(a, c *Host) int { return b.rank(a) - b.rank(c) })
	// A host that was only heard of, such as a bastion, has no row.
	b.model.Hosts = slices.DeleteFunc(b.model.Hosts, func(h *Host) bool {
		return len(h.Bars)+len(h.Looks)+len(h.Waits)+len(h.Left) == 0
	})
	b.path()
}

// rank is a host's place: kgpu's own machine, then the hosts of the plan, then others.
func (b *builder) rank(h *Host) int {
	switch i := slices.Index(b.order, h.Name); {
	case h.Name == "":
		return -1
	case i < 0:
		return len(b.order)
	default:
		return i
	}
}

// lanes puts bars that overlap below each other, and returns how many lanes that takes.
func lanes(bars []*Bar) int {
	var ends []int64
	for _, bar := range bars {
		lane := slices.IndexFunc(ends, func(end int64) bool { return end <= bar.Start })
		if lane < 0 {
			lane = len(ends)
			ends = append(ends, 0)
		}
		bar.Lane, ends[lane] = lane, bar.End
	}
	return max(1, len(ends))
}
