// Package report shows what a run does: events as lines for people, in colour on a terminal, or as JSON for programs;
// plans and errors as text. What hosts say comes out without what a terminal would obey. It decides nothing.
package report

import (
	"encoding/json"
	"io"
	"os"
	"sync"

	"kgpu.dev/kgpu/bootstrap/event"
)

// Kind is a way to show events.
type Kind string

// The kinds of report.
const (
	Plain    Kind = "plain"    // a line with the time, the host and the step: for pipes and files
	Terminal Kind = "terminal" // the same with elapsed time and colour, unless NO_COLOR is set; a View has a picture, too
	JSON     Kind = "json"     // one event a line, every event, as package event defines it
)

// Detail is how much Plain and Terminal tell.
type Detail int

// The levels of detail.
const (
	Quiet   Detail = iota - 1 // only warnings, errors and the result
	Normal                    // and the steps, and what is waited for
	Verbose                   // and connections, commands, steps left out, and the output of the steps
)

// Sink shows events. Close writes what is left and returns the first error that writing met.
type Sink interface {
	event.Sink
	Close() error
}

// New returns a sink that shows events on w.
func New(kind Kind, w io.Writer, detail Detail) Sink {
	out := &writer{w: w}
	if kind == JSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return &jsonLines{writer: out, encoder: encoder}
	}
	l := &lines{writer: out, detail: detail, tails: map[event.Ref][]string{}, width: func() int { return LookOf(w).Width }}
	if kind == Terminal {
		l.elapsed = true
		l.colour = colourWanted()
	}
	return l
}

// Detect returns Terminal when f is one that draws, else Plain. NO_COLOR is taken as the wish for nothing but text.
func Detect(f *os.File) Kind {
	if LookOf(f).Colour {
		return Terminal
	}
	return Plain
}

// writer remembers the first error, after which it writes nothing.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.w.Write(p)
	}
	return len(p), w.err
}

type jsonLines struct {
	mu      sync.Mutex
	writer  *writer
	encoder *json.Encoder
}

// Emit writes e as one line.
func (j *jsonLines) Emit(e event.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.encoder.Encode(e.Printed()) // the writer keeps the error
}

// Close returns the first error that writing met.
func (j *jsonLines) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writer.err
}
