// Package event is the stream of a run: one type of record for everything that a person or a program may want to
// follow. --output json prints it as it is, so its fields and kinds are an API.
package event

import (
	"sync"
	"time"
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
