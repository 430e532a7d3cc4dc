package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/scripts"
)

// FactsBounds is what a host may take to tell what it is. What the facts can do without may take three minutes in all where
// everything hangs: the driver, docker, etcd's directory and the API server. For the rest they wait half a minute at a program that
// hangs, and end; one after the other may be slow. Thousands of nodes, packages and addresses are a few megabytes.
var FactsBounds = Bounds{Bytes: 8 << 20, Time: 5 * time.Minute}

// Look gathers the facts of one host.
func (s *Session) Look(ctx context.Context, id string) error {
	var out []byte
	var begun time.Time
	var reached netip.Addr
	err := s.Reconnecting(ctx, id, func(h *remote.Host) (err error) {
		defer s.tellSlow(id)()
		begun, reached = time.Now(), h.Addr()
		out, err = h.Output(ctx, Question{Name: "facts", Script: scripts.Facts()}.command(), FactsBounds)
		return err
	})
	if err != nil {
		return FactsError(id, err)
	}
	seen, err := facts.Parse(out)
	if err != nil {
		return FactsError(id, err, out...)
	}
	seen.Reached = reached
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Facts[id] = seen
	s.skew[id] = skew(seen.Now, begun, time.Now())
	return nil
}

// Seen is what a host has told, and how far its clock is off; nil: nothing.
func (s *Session) Seen(id string) (*facts.Host, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Facts[id], s.skew[id]
}

// slowFacts is what facts take where nothing hangs, with some patience.
var slowFacts = 10 * time.Second

// tellSlow tells that a host's facts are waited for, once they are late, until what it returns is called.
func (s *Session) tellSlow(id string) (over func()) {
	begun, told := time.Now(), make(chan struct{})
	wait := event.Event{Host: id, Kind: event.Wait}
	timer := time.AfterFunc(slowFacts, func() {
		defer close(told)
		e := wait
		e.Text = fmt.Sprintf("for its facts: it is busy, or its driver or docker hangs; giving up after %s in all", FactsBounds.Time)
		s.Tell(e)
	})
	return func() {
		if timer.Stop() {
			return
		}
		<-told
		wait.Text, wait.Millis = "for its facts", max(1, time.Since(begun).Milliseconds())
		s.Tell(wait)
	}
}

// losses is how often a connection may be lost during one thing that takes seconds.
const losses = 3

// settles is how long a host that goes down may take to end its connections, after its programs.
const settles = time.Second

// Reconnecting does what may be done twice, over as many connections as it takes. What fails is done once more: the host may be
// going down.
func (s *Session) Reconnecting(ctx context.Context, id string, do func(*remote.Host) error) error {
	h, failed := s.Conn(id), false
	for lost := 1; ; lost++ {
		err := do(h)
		if mayBeGoingDown(err) && !failed {
			failed = true
			select {
			case <-ctx.Done():
			case <-time.After(settles):
				continue
			}
		}
		if !errors.Is(err, remote.ErrLost) || ctx.Err() != nil || lost > losses {
			return err
		}
		if err := h.Reconnect(ctx); errors.Is(err, &reason.Error{ID: reason.SSHUnreachable}) {
			return &reason.Error{ID: reason.SSHLost, Host: id, Doing: "reconnecting", Err: err, Detail: "the host did not come back: " + err.Error()}
		} else if err != nil {
			return err
		}
	}
}

// FactsError wraps what went wrong on the way to facts, unless it has a reason of its own. Of an answer that is not whole, its end
// is the host's own word.
func FactsError(id string, err error, answer ...byte) error {
	if len(reason.All(err)) > 0 {
		return err
	}
	e := &reason.Error{ID: reason.FactsFailed, Host: id, Doing: "gathering facts", Err: err}
	var exit *remote.ExitError
	switch {
	case errors.As(err, &exit):
		e.Exit, e.Stderr = &exit.Status, exit.Stderr
		e.Detail = cmp.Or(printable.Short(exit.LastLine(), AnswerShown), "the script ended there and said nothing")
	case errors.Is(err, facts.ErrTruncated):
		e.Stderr = string(answer[max(0, len(answer)-AnswerShown):])
		if len(answer) == 0 {
			e.Detail = err.Error() + ": the host said nothing"
		}
	}
	return e
}

// mayBeGoingDown reports whether a command failed as it may where a host ends its programs, and then its connections: it is no such
// sign when the host says who else is to log in.
func mayBeGoingDown(err error) bool {
	var exit *remote.ExitError
	var other *remote.NotRunError
	return errors.As(err, &exit) || errors.As(err, &other) && other.User == ""
}

// AnswerShown is how much of a host's answer goes into an error.
const AnswerShown = 1000

// skew is how far a clock is outside of the interval in which it was read; zero when it is inside.
func skew(clock, begun, ended time.Time) time.Duration {
	switch {
	case clock.Before(begun):
		return clock.Sub(begun)
	case clock.After(ended):
		return clock.Sub(ended)
	}
	return 0
}
