package run

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"

	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// listener hears what a batch does, in order.
type listener interface {
	begun(step string, at int64) // milliseconds since 1970, by the host's clock; 0: unknown
	logged(step, text string)
	waiting(step, what string)
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

// Bounds of what a host may say. The runner ends lines at a few KiB; only outputs are longer: the logs of the proof have
// 16 KiB for each card.
const (
	maxText    = 64 << 10 // of a line
	maxOutput  = 16 << 20 // of a line that holds an output
	maxOutputs = 32 << 20 // of all outputs of a batch
	outputCost = 1 << 10  // that even an empty output counts for
)

// reader takes a batch's event lines apart. offset is where the line after the last complete one begins, so that
// following goes on exactly there over another connection. It keeps no more of a line than there can honestly be.
type reader struct {
	listener listener

	mu      sync.Mutex
	offset  int64
	ending  ending
	partial []byte // beginning of the line
	length  int64  // of the line so far
	outputs int64  // size of the outputs so far
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

// line handles a complete line, or the beginning of one of that length; what is not an event (the torn end of a file after
// a power cut) is left out.
func (r *reader) line(line string, length int64) {
	switch line {
	case "X":
		r.ending = gone
		return
	case "N":
		r.ending = never
		return
	}
	cut := ""
	if length > int64(len(line)) {
		cut = " [cut]"
	}
	r.offset += length + 1
	kind, rest, _ := strings.Cut(line, "\t")
	if kind == "E" {
		r.ending = ended
		return
	}
	step, rest, found := strings.Cut(rest, "\t")
	if !found {
		return
	}
	step = printable.Line(step)
	switch kind {
	case "B":
		at, _ := strconv.ParseInt(rest, 10, 64) // what is none is unknown
		r.listener.begun(step, at)
	case "L":
		r.listener.logged(step, printable.Line(rest)+cut)
	case "W":
		r.listener.waiting(step, printable.Line(rest)+cut)
	case "O":
		name, encoded, _ := strings.Cut(rest, "\t")
		r.outputs += int64(len(encoded)) + outputCost
		if cut != "" || r.outputs > maxOutputs {
			r.tooMuch("the outputs are longer than there is any use for")
			return
		}
		if content, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			r.listener.output(step, name, content)
		}
	case "D":
		if d, ok := parseDone(rest); ok {
			r.listener.done(step, d)
		}
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
