// Package event is the stream that a run tells: one record for everything a person or a program may want to follow.
// It is printed as it is by --output json; the fields and kinds are an API.
package event

import (
	"slices"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/printable"
)

// Kind is what happened.
type Kind string

// The kinds of event.
const (
	Begin     Kind = "begin"      // a run begins, and with it the stream; text is its command line, schema the version of the stream
	Plan      Kind = "plan"       // what is going to be done is known; plan lists it. A run may tell several, each beside the former
	Connect   Kind = "connect"    // an SSH connection was opened (ms: time from dial to authenticated)
	Command   Kind = "command"    // a remote command ended (one event per remote command; exit is its status)
	StepStart Kind = "step.start" // a step began on a host
	StepDone  Kind = "step.done"  // a step ended well
	StepSkip  Kind = "step.skip"  // a step was left out: already satisfied, or not selected
	Log       Kind = "log"        // a line of a step's output
	Wait      Kind = "wait"       // something is waited for; text names it. With ms the wait is over: it took so long
	Proof     Kind = "proof"      // something was shown to work; text names it
	Warning   Kind = "warning"    // something the user should know that stops nothing
	Error     Kind = "error"      // something failed; reason is the stable ID
	Result    Kind = "result"     // the run ended; reason is "ok" or the ID of the failure
)

// Schema is the version of the stream: it grows when a field or a kind changes its meaning or goes, not when one is added.
const Schema = 1

// Satisfied is the reason of a StepSkip where nothing had to be done.
const Satisfied = "satisfied"

// Unselected is the reason of a StepSkip of a step that the command line leaves out.
const Unselected = "unselected"

// Event is one record. Host and Step are empty where none is concerned.
type Event struct {
	Time   time.Time `json:"time"`
	Run    string    `json:"run"`
	Host   string    `json:"host"`
	Step   string    `json:"step"`
	Kind   Kind      `json:"event"`
	Reason string    `json:"reason"`
	Millis int64     `json:"ms"`             // how long it took, where it took time; of a step.start that was heard of late: how long ago it was
	Text   string    `json:"text,omitempty"` // for people; no secrets
	Exit   *int      `json:"exit,omitempty"` // exit status of a remote command
	Schema int       `json:"schema,omitempty"`
	Plan   []Planned `json:"plan,omitempty"`
}

// Planned is a step that a run is going to take.
type Planned struct {
	Host   string `json:"host"`
	Step   string `json:"step"`
	Title  string `json:"title"`
	Reason string `json:"reason"`          // why it has to be done here, now
	Needs  []Ref  `json:"needs,omitempty"` // the planned steps that must have ended well before; on another host: a gate
}

// Ref names a step on a host.
type Ref struct {
	Host string `json:"host"`
	Step string `json:"step"`
}

// Sink receives events. Emit must be safe for concurrent use and must not block for long.
type Sink interface{ Emit(Event) }

// SinkFunc makes a Sink of a function.
type SinkFunc func(Event)

// Emit calls f.
func (f SinkFunc) Emit(e Event) { f(e) }

// Discard drops every event.
var Discard Sink = SinkFunc(func(Event) {})

// Recorder keeps events in memory.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Emit keeps e.
func (r *Recorder) Emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns a copy of what was emitted so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Printed is e as a terminal may get it, and so a file that people look at: JSON leaves some control characters as they
// are.
func (e Event) Printed() Event {
	for _, field := range []*string{&e.Host, &e.Step, &e.Reason, &e.Text} {
		*field = printable.Text(*field)
	}
	if len(e.Plan) > 0 {
		steps := make([]Planned, len(e.Plan))
		for i, p := range e.Plan {
			p.Host, p.Step, p.Title, p.Reason = printable.Text(p.Host), printable.Text(p.Step), printable.Text(p.Title), printable.Text(p.Reason)
			p.Needs = slices.Clone(p.Needs)
			for j, need := range p.Needs {
				p.Needs[j] = Ref{Host: printable.Text(need.Host), Step: printable.Text(need.Step)}
			}
			steps[i] = p
		}
		e.Plan = steps
	}
	return e
}

// What a host can make a run grow by. An honest host tells a few MiB: what package managers, compilers of drivers and
// kubeadm print.
const (
	MostOfHost = 32 << 20       // bytes that one host may tell a run, and that the folder of the run keeps of it
	MostOfRun  = 8 * MostOfHost // bytes that the folder of a run has
	Cost       = 192            // bytes that a line or an event counts for beyond its text
)

// Budget counts what hosts make grow: the one bound for all that they tell, whatever kind of line or event it is. The zero
// value is ready, and it is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	spent map[string]int
}

// Spend counts bytes of a host and reports whether it may tell that much in all.
func (b *Budget) Spend(host string, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent == nil {
		b.spent = map[string]int{}
	}
	b.spent[host] += bytes
	return b.spent[host] <= MostOfHost
}
