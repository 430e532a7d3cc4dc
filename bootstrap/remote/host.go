package remote

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Host is a machine that is connected. It is safe for concurrent use.
type Host struct {
	dialer   *Dialer
	id       string
	target   *target
	password string // for sudo; empty: sudo must not ask

	reconnecting sync.Mutex

	mu   sync.Mutex
	conn *conn
}

// ID is how the inventory names the host in output.
func (h *Host) ID() string { return h.id }

// Close ends the connection.
func (h *Host) Close() error {
	h.current().close(errClosed)
	return nil
}

func (h *Host) current() *conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conn
}

// Addr is the IP address that was reached. Behind a bastion, which looks up names itself, it is zero unless the
// inventory gives an IP address.
func (h *Host) Addr() netip.Addr {
	if h.target.via == nil {
		return addrOf(h.current().raw.RemoteAddr())
	}
	a, err := netip.ParseAddr(h.target.host)
	if err != nil {
		return netip.Addr{}
	}
	return a
}

// LocalAddr is the IP address on this machine from which the host was reached; zero behind a bastion.
func (h *Host) LocalAddr() netip.Addr {
	if h.target.via != nil {
		return netip.Addr{}
	}
	return addrOf(h.current().raw.LocalAddr())
}

func addrOf(a net.Addr) netip.Addr {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap()
}

// DialTCP connects to address, host:port as the host sees it.
func (h *Host) DialTCP(ctx context.Context, address string) (net.Conn, error) {
	c := h.current()
	if !c.alive() {
		return nil, h.lost(c, "connecting to "+address, errClosed)
	}
	t, err := openTunnel(ctx, c, address)
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		return nil, inHost(context.Cause(ctx), h.id)
	case c.diedWith(err):
		return nil, h.lost(c, "connecting to "+address, err)
	default:
		return nil, inHost(&net.OpError{Op: "dial", Net: "tcp", Addr: tunnelAddr(address), Err: err}, h.id)
	}
}

// lost is the error of what was being done when c died.
func (h *Host) lost(c *conn, doing string, err error) error {
	return &reason.Error{ID: reason.SSHLost, Host: h.id, Doing: doing, Err: c.lost(err)}
}

// maxRefusals ends Reconnect when the keys are refused again and again. A machine that boots refuses a few times too.
const maxRefusals = 8

// Reconnect opens the connection anew, after it was lost or the machine went down. It tries until ctx ends, except when
// trying again is no use: the host key is another one, or the keys are refused again and again. A connection that lives is
// left alone: several commands heard of the loss of the one before, and another of them was first.
func (h *Host) Reconnect(ctx context.Context) error {
	h.reconnecting.Lock()
	defer h.reconnecting.Unlock()
	old := h.current()
	if old.alive() {
		return nil
	}
	refusals := 0
	for try := 1; ; try++ {
		c, err := h.dialer.connect(ctx, h.target, h.id, old.hostKey)
		if err == nil {
			h.mu.Lock()
			h.conn = c
			h.mu.Unlock()
			return nil
		}
		if refused(err) {
			refusals++
		}
		if final(err) || refusals == maxRefusals || h.dialer.ctx.Err() != nil {
			return inHost(err, h.id)
		}
		if pause(ctx, try) != nil {
			var e *reason.Error
			if !errors.As(err, &e) {
				e = &reason.Error{ID: reason.SSHUnreachable, Doing: "connecting again to " + h.target.String(), Err: err}
			}
			return inHost(e, h.id)
		}
	}
}

// refused reports whether the keys were refused, rather than the login cut off, as it is while a machine boots.
func refused(err error) bool {
	return errors.Is(err, &reason.Error{ID: reason.SSHAuthFailed}) && !hungUp(err)
}

// final reports whether there is no use in trying again.
func final(err error) bool {
	for _, id := range []reason.ID{reason.SSHHostKeyUnknown, reason.SSHHostKeyMismatch, reason.SecretMissing} {
		if errors.Is(err, &reason.Error{ID: id}) {
			return true
		}
	}
	return false
}
