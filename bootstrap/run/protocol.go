package run

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// listener hears what a batch does, in order.
type listener interface {
	begun(step string, at int64) // milliseconds since 1970, by the host's clock; 0: unknown
	logged(step, text string)
	waiting(step, what string)
	warned(step, text string)
	output(step, name string, content []byte)
	done(step string, d done)
}

// done is how a step ended.
type done struct {
	exit   int
	millis int64
	reason string // empty: well
	detail string
}

// ending is how a batch ended.
type ending string

const (
	notYet ending = ""
	ended  ending = "ended" // the runner said so
	gone   ending = "gone"  // the runner died before
	never  ending = "never" // the batch was never started
)

// Bounds of a line; event.Budget has that of all of them. The runner ends lines at a few KiB; only outputs are longer: the
// logs of the proof have 16 KiB for each card.
const (
	maxText   = 64 << 10
	maxOutput = 16 << 20 // of a line that holds an output
)

// reader takes a batch's event lines apart. offset is where the line after the last complete one begins, so that
// following goes on exactly there over another connection. It keeps no more of a line than there can honestly be.
type reader struct {
	listener listener
	host     string
	budget   *event.Budget // nil: one of its own

	mu      sync.Mutex
	offset  int64
	ending  ending
	partial []byte // beginning of the line
	length  int64  // of the line so far
	waited  string // the line before, if it told a wait
	attempt int
	refuse  func(error) // hears why the host is not listened to any more; nil: nobody does
}

// connect returns the writer for one connection; what older connections still deliver is dropped.
func (r *reader) connect() *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt++
	r.partial, r.length, r.ending = nil, 0, notYet
	return &connection{reader: r, attempt: r.attempt}
}

// onRefusal says who hears that the host is not listened to any more.
func (r *reader) onRefusal(f func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = f
}

// disconnect ends the connection there is: a command that was cancelled may still have something to say.
func (r *reader) disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt++
}

func (r *reader) position() (int64, ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.offset, r.ending
}

type connection struct {
	reader  *reader
	attempt int
}

// Write takes a piece of the stream, cut anywhere.
func (c *connection) Write(p []byte) (int, error) {
	r := c.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.attempt != r.attempt {
		return len(p), nil
	}
	for rest := p; ; {
		piece, after, found := bytes.Cut(rest, []byte{'\n'})
		r.take(piece)
		if !found {
			return len(p), nil
		}
		r.line(string(r.partial), r.length)
		r.partial, r.length = r.partial[:0], 0
		if cap(r.partial) > maxText {
			r.partial = nil
		}
		rest = after
	}
}

// take adds to the line, as far as it is kept.
func (r *reader) take(piece []byte) {
	r.length += int64(len(piece))
	for len(piece) > 0 {
		most := maxText
		if len(r.partial) > 0 && r.partial[0] == 'O' {
			most = maxOutput
		}
		n := min(len(piece), most-len(r.partial))
		if len(r.partial) == 0 {
			n = 1 // which says what line it is
		}
		if n <= 0 {
			if r.partial[0] == 'O' {
				r.tooMuch("an output is longer than there is any use for")
			}
			return
		}
		r.partial, piece = append(r.partial, piece[:n]...), piece[n:]
	}
}

// tooMuch says that the host is not listened to any more.
func (r *reader) tooMuch(what string) {
	if r.refuse != nil {
		r.refuse(&reason.Error{ID: reason.HostOutputTooLarge, Detail: what})
	}
}

// told is a line about a step.
type told struct {
	step, rest string
	cut        string // mark of a line that is not there whole
}

// kinds are the lines about steps, by the letter that they begin with.
var kinds = map[string]func(*reader, told){
	"B": func(r *reader, t told) {
		at, _ := strconv.ParseInt(t.rest, 10, 64) // what is none is unknown
		r.listener.begun(t.step, at)
	},
	"L": func(r *reader, t told) { r.listener.logged(t.step, printable.Line(t.rest)+t.cut) },
	"W": func(r *reader, t told) { r.listener.waiting(t.step, printable.Line(t.rest)+t.cut) },
	"!": func(r *reader, t told) { r.listener.warned(t.step, printable.Line(t.rest)+t.cut) },
	"O": (*reader).output,
	"D": func(r *reader, t told) {
		if d, ok := parseDone(t.rest); ok {
			r.listener.done(t.step, d)
		}
	},
}

// marks are the lines that say how a batch ended where its runner cannot; they are no part of its events.
var marks = map[string]ending{"X": gone, "N": never}

// line handles a complete line, or the beginning of one of that length; what is not an event (the torn end of a file after
// a power cut) is left out, and so is a wait that was told just before. Whatever it is, the host has that much less to say.
func (r *reader) line(line string, length int64) {
	if mark, ok := marks[line]; ok {
		r.ending = mark
		return
	}
	r.offset += length + 1
	if r.budget == nil {
		r.budget = &event.Budget{}
	}
	if !r.budget.Spend(r.host, len(line)+event.RecordOverhead) {
		r.tooMuch(fmt.Sprintf("its steps told more than %d MiB, and what they told since is left out", event.MaxHostBytes>>20))
		return
	}
	again := line == r.waited
	r.waited = ""
	kind, rest, _ := strings.Cut(line, "\t")
	switch kind {
	case "E":
		r.ending = ended
		return
	case "W":
		r.waited = line
	}
	step, rest, found := strings.Cut(rest, "\t")
	if handle := kinds[kind]; found && handle != nil && !again {
		cut := ""
		if length > int64(len(line)) {
			cut = " [cut]"
		}
		handle(r, told{printable.Line(step), rest, cut})
	}
}

func (r *reader) output(t told) {
	if t.cut != "" {
		r.tooMuch("an output is longer than there is any use for")
		return
	}
	name, encoded, _ := strings.Cut(t.rest, "\t")
	if content, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		r.listener.output(t.step, name, content)
	}
}

func parseDone(text string) (done, bool) {
	fields := strings.SplitN(text, "\t", 4)
	if len(fields) != 4 {
		return done{}, false
	}
	exit, err1 := strconv.Atoi(fields[0])
	millis, err2 := strconv.ParseInt(fields[1], 10, 64)
	d := done{exit: exit, millis: millis, reason: printable.Line(fields[2]), detail: printable.Line(fields[3])}
	return d, err1 == nil && err2 == nil
}
