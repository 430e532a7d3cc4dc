package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// reportEvery is how often users are told that a host is still away.
const reportEvery = 10 * time.Second

// errAway is why Reconnect gave a host up.
var errAway = errors.New("the host was away for too long")

// outage is the time in which a host cannot be reached.
//
// From here a cut and a power cut look the same: silence, for which LinkTimeout is the limit. A machine that is on its way
// down or up shows itself: it hangs up, it refuses connections, it lets nobody in yet. Then RebootTimeout is, if it is
// longer; both count from the moment the loss was noticed. Whether the machine went down its boot ID says afterwards, not
// before.
type outage struct {
	host  *Host
	since time.Time // the last sign of life
	begun time.Time // the loss was noticed
	end   context.CancelCauseFunc
	quiet chan struct{} // closed when nothing more is reported

	mu       sync.Mutex
	reboots  bool
	last     *reason.Error // of the last attempt; nil: it is not over
	next     time.Time     // when the next one begins; zero: it goes on
	deadline time.Time     // of the caller; zero: none
}

// beginOutage notes that a host lost the connection c. The context ends when the outage has lasted too long.
func (h *Host) beginOutage(ctx context.Context, c *conn) (*outage, context.Context) {
	o := &outage{host: h, since: c.raw.lastRead(), begun: time.Now(), quiet: make(chan struct{})}
	o.deadline, _ = ctx.Deadline()
	// The end of a bastion is no sign of the host behind it.
	o.reboots = !c.alive() && hungUp(context.Cause(c.ctx)) && (c.via == nil || c.via.alive())
	ctx, o.end = context.WithCancelCause(ctx)
	go o.report(ctx)
	return o, ctx
}

// stop ends what beginOutage began.
func (o *outage) stop() {
	o.end(nil)
	<-o.quiet
}

// report tells users that the host is away, now and every reportEvery, until it is back or given up.
func (o *outage) report(ctx context.Context) {
	defer close(o.quiet)
	told := time.Now()
	o.emitLost()
	for {
		limit := o.limit()
		wake := told.Add(reportEvery)
		if limit.Before(wake) {
			wake = limit
		}
		if sleep(ctx, time.Until(wake)) != nil {
			return
		}
		if now := time.Now(); !now.Before(o.limit()) {
			o.end(errAway)
			return
		}
		if !time.Now().Before(told.Add(reportEvery)) {
			told = time.Now()
			o.emitLost()
		}
	}
}

// limit is when the host is given up.
func (o *outage) limit() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun.Add(o.timeout())
}

func (o *outage) timeout() time.Duration {
	opt := o.host.dialer.opt
	if o.reboots {
		return max(opt.LinkTimeout, opt.RebootTimeout)
	}
	return opt.LinkTimeout
}

func (o *outage) emitLost() {
	now := time.Now()
	limit := o.limit()
	o.mu.Lock()
	if !o.deadline.IsZero() && o.deadline.Before(limit) {
		limit = o.deadline
	}
	// What matters most comes first: a narrow terminal shows no more.
	text := fmt.Sprintf("connection lost %s ago; giving up in %s, trying again", seconds(now.Sub(o.since)), seconds(limit.Sub(now)))
	if o.next.After(now) {
		text += " in " + seconds(o.next.Sub(now))
	}
	if o.last != nil {
		text += " (" + cause(o.last) + ")"
	}
	o.mu.Unlock()
	o.emit(event.Event{Text: text})
}

// recovered ends the outage and tells users that the host is there again.
func (o *outage) recovered() {
	o.stop()
	o.emit(event.Event{Text: "the connection is back", Millis: max(1, time.Since(o.since).Milliseconds())})
}

func (o *outage) emit(e event.Event) {
	opt := o.host.dialer.opt
	e.Time, e.Run, e.Host, e.Kind, e.Reason = time.Now(), opt.Run, o.host.id, event.Wait, string(reason.SSHLost)
	opt.Events.Emit(e)
}

// failed notes how an attempt ended, and when the next one begins.
func (o *outage) failed(err error, pause time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, ok := errors.AsType[*reason.Error](err); ok { // else ctx ended: what was before says more
		o.last = e
		o.reboots = o.reboots || o.host.answers(e)
	}
	o.next = time.Now().Add(pause)
}

// retrying notes that the next attempt begins.
func (o *outage) retrying() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Time{}
}

// err is the error of a host that did not come back before ctx ended.
func (o *outage) err(ctx context.Context) *reason.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := reason.Error{ID: reason.SSHUnreachable, Doing: "connecting again to " + o.host.target.String(), Err: context.Cause(ctx)}
	if o.last != nil {
		e = *o.last
	}
	e.Detail = fmt.Sprintf("away for %s: %s", seconds(time.Since(o.since)), cause(&e))
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

// cause is why an attempt failed, without where.
func cause(e *reason.Error) string {
	if number, ok := errors.AsType[syscall.Errno](e.Err); ok {
		return number.Error()
	}
	return e.What()
}

func seconds(d time.Duration) string { return max(0, d).Round(time.Second).String() }

// maxRefusals ends Reconnect when the keys are refused again and again. A machine that boots refuses a few times too.
const maxRefusals = 8

// Reconnect opens the connection anew, after it was lost or the machine went down, and tells meanwhile what is waited for.
// It tries until ctx ends or the host was away for too long, except when trying again is no use: the host key is another
// one, or the keys are refused again and again. A connection that lives is left alone: several commands heard of the loss of
// the one before, and another of them was first.
func (h *Host) Reconnect(ctx context.Context) error {
	select {
	case h.reconnecting <- struct{}{}:
		defer func() { <-h.reconnecting }()
	case <-ctx.Done(): // who reconnects already may be more patient
		return &reason.Error{ID: reason.SSHUnreachable, Host: h.id, Doing: "connecting again to " + h.target.String(), Err: context.Cause(ctx)}
	}
	old := h.current()
	if old.alive() {
		return nil
	}
	o, ctx := h.beginOutage(ctx, old)
	defer o.stop()
	old.close(errClosed)
	h.leaveOthers() // what cut the one may have cut them
	refusals, timeout := 0, h.dialer.opt.ConnectTimeout
	for try := 1; ; try++ {
		c, err := h.dialer.connect(ctx, h.target, h.id, old.hostKey, timeout)
		if err == nil {
			h.mu.Lock()
			h.conn = c
			h.mu.Unlock()
			o.recovered()
			return nil
		}
		switch {
		case refused(err):
			refusals++
		case errors.Is(err, errSlow):
			timeout = slower * h.dialer.opt.ConnectTimeout
		}
		if final(err) || refusals == maxRefusals || h.dialer.ctx.Err() != nil {
			return inHost(err, h.id)
		}
		pause := Backoff(try, firstPause, longestPause)
		o.failed(err, pause)
		if sleep(ctx, pause) != nil {
			return inHost(o.err(ctx), h.id)
		}
		o.retrying()
	}
}

// refused reports whether the keys were refused, rather than the login cut off, as it is while a machine boots.
func refused(err error) bool {
	return errors.Is(err, &reason.Error{ID: reason.SSHAuthFailed}) && !hungUp(err)
}

// final reports whether there is no use in trying again.
func final(err error) bool {
	ids := []reason.ID{reason.SSHHostKeyUnknown, reason.SSHHostKeyMismatch, reason.SecretMissing}
	return slices.ContainsFunc(ids, func(id reason.ID) bool { return errors.Is(err, &reason.Error{ID: id}) })
}
