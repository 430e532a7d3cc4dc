package run

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// listener hears what a batch does, in order.
type listener interface {
	begun(step string)
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

// reader takes a batch's event lines apart. offset is where the line after the last complete one begins, so that
// following goes on exactly there over another connection.
type reader struct {
	listener listener

	mu      sync.Mutex
	offset  int64
	ending  ending
	partial []byte
	attempt int
}

// connect returns the writer for one connection; what older connections still deliver is dropped.
func (r *reader) connect() *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt++
	r.partial, r.ending = nil, notYet
	return &connection{reader: r, attempt: r.attempt}
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
	r.partial = append(r.partial, p...)
	for {
		line, rest, found := bytes.Cut(r.partial, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		r.line(string(line))
		r.partial = rest
	}
}

// line handles a complete line; what is not an event (the torn end of a file after a power cut) is left out.
func (r *reader) line(line string) {
	switch line {
	case "X":
		r.ending = gone
		return
	case "N":
		r.ending = never
		return
	}
	r.offset += int64(len(line)) + 1
	kind, rest, _ := strings.Cut(line, "\t")
	if kind == "E" {
		r.ending = ended
		return
	}
	step, rest, found := strings.Cut(rest, "\t")
	if !found {
		return
	}
	switch kind {
	case "B":
		r.listener.begun(step)
	case "L":
		r.listener.logged(step, printable(rest))
	case "W":
		r.listener.waiting(step, printable(rest))
	case "O":
		name, encoded, _ := strings.Cut(rest, "\t")
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
	d := done{exit: exit, millis: millis, reason: fields[2], detail: printable(fields[3])}
	return d, err1 == nil && err2 == nil
}

var escapeSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-_])`)

// printable removes what would do something to a terminal.
func printable(s string) string {
	s = escapeSequence.ReplaceAllString(strings.ToValidUTF8(s, "�"), "")
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\t' {
			return -1
		}
		return c
	}, s)
}
