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
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/scripts"
)

// FactsBounds limit the gathering of facts. Optional facts may take three minutes in all if everything hangs: the
// driver, docker, etcd's directory and the API server. Required ones time out after half a minute per program.
// Thousands of nodes, packages and addresses are a few megabytes.
var FactsBounds = Bounds{Bytes: 8 << 20, Time: 5 * time.Minute}

// GatherFacts gathers the facts of one host.
func (s *Session) GatherFacts(ctx context.Context, id string) error {
	var out []byte
	var begun time.Time
	var reached netip.Addr
	err := s.WithReconnect(ctx, id, func(h *remote.Host) (err error) {
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

// FactsOf returns the facts of a host and how far its clock is off; nil if there are none.
func (s *Session) FactsOf(id string) (*facts.Host, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Facts[id], s.skew[id]
}

// slowFacts is how long gathering facts may take before the user is told.
var slowFacts = 10 * time.Second

// tellSlow tells the user that a host's facts are late, until the returned function is called.
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

// maxReconnects is how often a connection may be lost in a single call of WithReconnect.
const maxReconnects = 3

// shutdownGrace is how long a host that shuts down may take from ending its programs to closing its connections.
const shutdownGrace = time.Second

// WithReconnect calls do, which must be idempotent, and again after a lost connection was restored. A failed command is
// also tried once more, because the host may be shutting down.
func (s *Session) WithReconnect(ctx context.Context, id string, do func(*remote.Host) error) error {
	h, failed := s.Conn(id), false
	for lost := 1; ; lost++ {
		err := do(h)
		if mayBeShuttingDown(err) && !failed {
			failed = true
			select {
			case <-ctx.Done():
			case <-time.After(shutdownGrace):
				continue
			}
		}
		if !errors.Is(err, remote.ErrLost) || ctx.Err() != nil || lost > maxReconnects {
			return err
		}
		if err := h.Reconnect(ctx); errors.Is(err, &reason.Error{ID: reason.SSHUnreachable}) {
			return &reason.Error{ID: reason.SSHLost, Host: id, Doing: "reconnecting", Err: err, Detail: "the host did not come back: " + err.Error()}
		} else if err != nil {
			return err
		}
	}
}

// FactsError gives an error of gathering facts the reason FACTS_FAILED, unless it has a reason already. The end of a
// truncated answer is kept as its standard error.
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

// mayBeShuttingDown reports whether a failed command may be due to a host that is shutting down. A host that names another
// user to log in as is not.
func mayBeShuttingDown(err error) bool {
	var exit *remote.ExitError
	var other *remote.NotRunError
	return errors.As(err, &exit) || errors.As(err, &other) && other.User == ""
}

// AnswerShown is how many bytes of a host's answer an error contains.
const AnswerShown = 1000

// skew is how far a clock is outside the interval in which it was read; zero if it is inside.
func skew(clock, begun, ended time.Time) time.Duration {
	switch {
	case clock.Before(begun):
		return clock.Sub(begun)
	case clock.After(ended):
		return clock.Sub(ended)
	}
	return 0
}
