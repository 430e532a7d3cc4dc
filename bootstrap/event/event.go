// Package event is the stream of a run: one type of record for everything that a person or a program may want to
// follow. --output json prints it as it is, so its fields and kinds are an API.
package event

import (
	"slices"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Kind says what happened.
type Kind string

const (
	Begin     Kind = "begin"      // the run began; text is its command line, schema the version of the stream
	Plan      Kind = "plan"       // steps were planned; plan lists them. Later plans of a run add to earlier ones
	Connect   Kind = "connect"    // an SSH connection was opened (ms: time from dial to authenticated)
	Command   Kind = "command"    // a remote command ended; exit is its status
	StepStart Kind = "step.start" // a step began on a host
	StepDone  Kind = "step.done"  // a step succeeded
	StepSkip  Kind = "step.skip"  // a step was not run: nothing to do, or not selected
	Log       Kind = "log"        // a line of a step's output
	Wait      Kind = "wait"       // something is waited for; text names it. With ms the wait has ended, after that time
	Proof     Kind = "proof"      // something was shown to work; text names it
	Warning   Kind = "warning"    // something that the user should know, and that stops nothing
	Error     Kind = "error"      // something failed; reason is its ID
	Result    Kind = "result"     // the run ended; reason is "ok" or the ID of the failure
)

// Schema is the version of the stream. It increases when a field or a kind is removed or changes its meaning, not when
// one is added.
const Schema = 1

// Satisfied is the reason of a StepSkip if there was nothing to do.
const Satisfied = "satisfied"

// Unselected is the reason of a StepSkip if the command line excluded the step.
const Unselected = "unselected"

// Event is one record. Host and Step are empty if it concerns none.
type Event struct {
	Time   time.Time `json:"time"`
	Run    string    `json:"run"`
	Host   string    `json:"host"`
	Step   string    `json:"step"`
	Kind   Kind      `json:"event"`
	Reason string    `json:"reason"`
	// Millis is the duration of what ended. In a step.start that arrived late, it is how long ago the step began.
	Millis int64     `json:"ms"`
	Text   string    `json:"text,omitempty"` // for people; no secrets
	Exit   *int      `json:"exit,omitempty"` // exit status of a remote command
	Schema int       `json:"schema,omitempty"`
	Plan   []Planned `json:"plan,omitempty"`
}

// Planned is a step that a run is going to do.
type Planned struct {
	Host   string `json:"host"`
	Step   string `json:"step"`
	Title  string `json:"title"`
	Reason string `json:"reason"`          // why it has to be done on this host
	Needs  []Ref  `json:"needs,omitempty"` // the planned steps that must succeed before, also on other hosts
}

// Ref names a step on a host.
type Ref struct {
	Host string `json:"host"`
	Step string `json:"step"`
}

// Ref names the step that the event is about; its ID is empty if it is about none.
func (e Event) Ref() Ref { return Ref{e.Host, e.Step} }

// Ref names the step.
func (p Planned) Ref() Ref { return Ref{p.Host, p.Step} }

// Sink receives events. Emit must be safe for concurrent use, and must return soon.
type Sink interface{ Emit(Event) }

// SinkFunc is a Sink that calls a function.
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

// Emit appends e.
func (r *Recorder) Emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns a copy of the recorded events.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Printed returns the event with all text printable, for terminals and for files that people read. JSON alone leaves
// some control characters as they are.
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

// These bound the data that hosts can make a run produce. An honest host sends a few MiB: the output of package
// managers, driver compilers and kubeadm.
const (
	MaxHostBytes   = 32 << 20         // bytes that a run accepts from one host, and keeps of it in its folder
	MaxRunBytes    = 8 * MaxHostBytes // bytes in the folder of a run
	RecordOverhead = 192              // bytes that a line or an event counts for in addition to its text
)

// Budget counts the bytes that each host sends, whatever kind of line or event they are. The zero value is ready to
// use, and it is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	spent map[string]int
}

// Spend counts bytes of a host and reports whether the host is within MaxHostBytes.
func (b *Budget) Spend(host string, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent == nil {
		b.spent = map[string]int{}
	}
	b.spent[host] += bytes
	return b.spent[host] <= MaxHostBytes
}
