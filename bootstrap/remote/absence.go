package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// tellEvery is how often it is told that a host is still away.
const tellEvery = 10 * time.Second

// errAway: Reconnect gave the host up.
var errAway = errors.New("the host was away for too long")

// absence is the time in which a host is away.
//
// From here a cut and a power cut look the same: silence, for which LinkTimeout is the limit. A machine that is on its way
// down or up shows itself: it hangs up, it refuses connections, it lets nobody in yet. Then RebootTimeout is, if it is
// longer; both count from the moment the loss was noticed. Whether the machine went down its boot ID says afterwards, not
// before.
type absence struct {
	host  *Host
	since time.Time // the last sign of life
	begun time.Time // the loss was noticed
	end   context.CancelCauseFunc
	quiet chan struct{} // closed when nothing more is told

	mu       sync.Mutex
	reboots  bool
	last     *reason.Error // of the last attempt; nil: it is not over
	next     time.Time     // when the next one begins; zero: it goes on
	deadline time.Time     // of the caller; zero: none
}

// leave begins the absence of a host that had the connection c. The context ends when it has lasted too long.
func (h *Host) leave(ctx context.Context, c *conn) (*absence, context.Context) {
	a := &absence{host: h, since: c.raw.lastRead(), begun: time.Now(), quiet: make(chan struct{})}
	a.deadline, _ = ctx.Deadline()
	// The end of a bastion is no sign of the host behind it.
	a.reboots = !c.alive() && hungUp(context.Cause(c.ctx)) && (c.via == nil || c.via.alive())
	ctx, a.end = context.WithCancelCause(ctx)
	go a.tellOn(ctx)
	return a, ctx
}

// over ends what leave began.
func (a *absence) over() {
	a.end(nil)
	<-a.quiet
}

// tellOn tells that the host is away, now and again and again, until it is back or given up.
func (a *absence) tellOn(ctx context.Context) {
	defer close(a.quiet)
	told := time.Now()
	a.tell()
	for {
		limit := a.limit()
		wake := told.Add(tellEvery)
		if limit.Before(wake) {
			wake = limit
		}
		if sleep(ctx, time.Until(wake)) != nil {
			return
		}
		if now := time.Now(); !now.Before(a.limit()) {
			a.end(errAway)
			return
		}
		if !time.Now().Before(told.Add(tellEvery)) {
			told = time.Now()
			a.tell()
		}
	}
}

// limit is when the host is given up.
func (a *absence) limit() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.begun.Add(a.patience())
}

func (a *absence) patience() time.Duration {
	opt := a.host.dialer.opt
	if a.reboots {
		return max(opt.LinkTimeout, opt.RebootTimeout)
	}
	return opt.LinkTimeout
}

func (a *absence) tell() {
	now := time.Now()
	limit := a.limit()
	a.mu.Lock()
	if !a.deadline.IsZero() && a.deadline.Before(limit) {
		limit = a.deadline
	}
	// What matters most comes first: a narrow terminal shows no more.
	text := fmt.Sprintf("connection lost %s ago; giving up in %s, trying again", seconds(now.Sub(a.since)), seconds(limit.Sub(now)))
	if a.next.After(now) {
		text += " in " + seconds(a.next.Sub(now))
	}
	if a.last != nil {
		text += " (" + inShort(a.last) + ")"
	}
	a.mu.Unlock()
	a.emit(event.Event{Text: text})
}

// back tells that the host is there again.
func (a *absence) back() {
	a.over()
	a.emit(event.Event{Text: "the connection is back", Millis: max(1, time.Since(a.since).Milliseconds())})
}

func (a *absence) emit(e event.Event) {
	opt := a.host.dialer.opt
	e.Time, e.Run, e.Host, e.Kind, e.Reason = time.Now(), opt.Run, a.host.id, event.Wait, string(reason.SSHLost)
	opt.Events.Emit(e)
}

// failed says how an attempt ended, and when the next one begins.
func (a *absence) failed(err error, pause time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var e *reason.Error
	if errors.As(err, &e) { // else ctx ended: what was before says more
		a.last = e
		a.reboots = a.reboots || a.host.answers(e)
	}
	a.next = time.Now().Add(pause)
}

// again says that the next attempt begins.
func (a *absence) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = time.Time{}
}

// why is the error of a host that did not come back before ctx ended.
func (a *absence) why(ctx context.Context) *reason.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := reason.Error{ID: reason.SSHUnreachable, Doing: "connecting again to " + a.host.target.String(), Err: context.Cause(ctx)}
	if a.last != nil {
		e = *a.last
	}
	e.Detail = fmt.Sprintf("away for %s: %s", seconds(time.Since(a.since)), inShort(&e))
	return &e
}

// answers reports whether a failed attempt shows that the machine itself is there, on its way down or up.
func (h *Host) answers(err error) bool {
	var channel *ssh.OpenChannelError
	switch {
	case errors.Is(err, &reason.Error{ID: reason.SSHAuthFailed}):
		return true
	case h.target.via == nil:
		return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errBusy)
	case errors.As(err, &channel):
		return channel.Reason == ssh.ConnectionFailed && strings.Contains(strings.ToLower(channel.Message), "refused")
	}
	return false
}

// inShort is why an attempt failed, without where.
func inShort(e *reason.Error) string {
	var number syscall.Errno
	switch {
	case errors.As(e.Err, &number):
		return number.Error()
	case e.Detail != "" || e.Err == nil:
		return e.Detail
	}
	return e.Err.Error()
}

func seconds(d time.Duration) string { return max(0, d).Round(time.Second).String() }
