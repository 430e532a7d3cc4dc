package remote

import (
	"context"
	"errors"
	"slices"

	"kgpu.dev/kgpu/bootstrap/reason"
)

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
