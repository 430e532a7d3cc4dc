// Package reason holds the failures kgpu knows by name. A reason's ID and exit status are an API:
// scripts match on them, the documentation is generated from them.
package reason

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// ID is the stable name of a failure, such as HOST_APT_LOCKED.
type ID string

// Reason describes one failure.
type Reason struct {
	ID      ID
	Exit    int    // exit status of kgpu when this is the only reason
	Meaning string // a sentence or three: what it means, and how kgpu came to say so
	Advice  string // one line: what to do
}

// Error is a failure with everything a person needs: where, during what, why, and what to do.
type Error struct {
	ID     ID
	Host   string // inventory name of the host; empty when no host is concerned
	Step   string // step ID; empty outside of steps
	Doing  string // what was being done, as a present participle: "connecting to 10.0.0.4:22"
	Exit   *int   // exit status of the remote command, where there was one
	Stderr string // end of the remote command's standard error
	Detail string // what was found, one line
	Advice string // overrides the reason's advice when set
	Err    error  // cause
}

// Error prints one line: host, step, what was being done, what went wrong.
func (e *Error) Error() string {
	var b strings.Builder
	for _, part := range []string{e.Host, e.Step, e.Doing} {
		if part != "" {
			fmt.Fprintf(&b, "%s: ", part)
		}
	}
	b.WriteString(e.What())
	if e.Exit != nil {
		fmt.Fprintf(&b, " (exit status %d)", *e.Exit)
	}
	fmt.Fprintf(&b, " [%s]", e.ID)
	return b.String()
}

// What is what went wrong, in words, without where and how.
func (e *Error) What() string {
	text := e.Detail
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	return cmp.Or(text, "failed")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same ID, so that errors.Is(err, &Error{ID: …}) works.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.ID == e.ID && t.Host == "" && t.Err == nil
}

// AdviceLine returns the advice for e: its own, or its reason's.
func (e *Error) AdviceLine() string {
	return cmp.Or(e.Advice, Lookup(e.ID).Advice)
}

// All collects every *Error in err's tree, in order.
func All(err error) []*Error {
	var out []*Error
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		if e, ok := err.(*Error); ok {
			out = append(out, e)
			return
		}
		switch x := err.(type) {
		case interface{ Unwrap() []error }:
			for _, e := range x.Unwrap() {
				walk(e)
			}
		case interface{ Unwrap() error }:
			walk(x.Unwrap())
		}
	}
	walk(err)
	return out
}

// Exit statuses that are not bound to one reason.
const (
	ExitOK       = 0
	ExitInternal = 1
	ExitFound    = 1  // kgpu doctor: something does not work
	ExitPending  = 2  // kgpu plan: changes are pending; kgpu status: something is not well; kgpu doctor: there are warnings only
	ExitUsage    = 3  // the command line is wrong, or names what is not there; or a question was not answered
	ExitSeveral  = 40 // several different reasons at once
)

// ExitStatus maps an error to kgpu's exit status: ExitUsage for a UsageError, the reason's own when there is one reason,
// ExitSeveral when they differ.
func ExitStatus(err error) int {
	if err == nil {
		return ExitOK
	}
	if _, usage := errors.AsType[*UsageError](err); usage {
		return ExitUsage
	}
	status := 0
	for _, e := range All(err) {
		switch s := Lookup(e.ID).Exit; {
		case status == 0:
			status = s
		case status != s:
			return ExitSeveral
		}
	}
	if status == 0 {
		return ExitInternal
	}
	return status
}

// UsageError is a command line that is wrong, or that names what is not there.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef is a UsageError with such a message.
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, args...)}
}

// Find returns the reason that a person means: by its ID, in any case and with dashes for underscores, or by its exit status.
func Find(word string) (Reason, bool) {
	if exit, err := strconv.Atoi(word); err == nil {
		for _, r := range Table() {
			if r.Exit == exit {
				return r, true
			}
		}
		return Reason{}, false
	}
	r, ok := table[ID(normal(word))]
	return r, ok
}

// Closest returns the ID that word is most likely a misspelling, or a part, of; empty: none is near.
func Closest(word string) ID {
	word = normal(word)
	if len(word) < 3 {
		return ""
	}
	var ids []string
	for _, r := range Table() {
		ids = append(ids, string(r.ID))
	}
	if near := nearest.Word(word, ids); near != "" {
		return ID(near)
	}
	for _, r := range Table() {
		if strings.Contains(string(r.ID), word) {
			return r.ID
		}
	}
	return ""
}

func normal(word string) string { return strings.ToUpper(strings.ReplaceAll(word, "-", "_")) }
