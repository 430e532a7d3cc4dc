package remote

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Host is a machine that is connected. It is safe for concurrent use.
type Host struct {
	dialer   *Dialer
	id       string
	target   *target
	password string // for sudo; empty: sudo must not ask

	reconnecting chan struct{} // has one place: who is in it reconnects

	mu     sync.Mutex
	conn   *conn
	others []*conn // further ones, where the server allows one connection too few sessions
}

// ID is how the inventory names the host in output.
func (h *Host) ID() string { return h.id }

// Close ends the connection.
func (h *Host) Close() error {
	h.leaveOthers()
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
	a, _ := netip.ParseAddr(h.target.host)
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
	p, _ := netip.ParseAddrPort(a.String())
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

// tunnel is a TCP connection that an SSH server makes for us. Unlike the bare SSH channel it has deadlines, and closing
// it returns at once and frees whoever reads or writes, even when the other side never answers.
type tunnel struct {
	net.Conn // our end of a pipe to the channel
	channel  io.Closer
	sent     chan struct{} // closed when what was written is in the channel
	address  tunnelAddr
}

type tunnelAddr string

func (tunnelAddr) Network() string  { return "tcp" }
func (a tunnelAddr) String() string { return string(a) }

// openTunnel connects to address, host:port as the server of c sees it.
func openTunnel(ctx context.Context, c *conn, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The ssh package may never answer when the connection dies just now.
	defer context.AfterFunc(c.ctx, cancel)()
	channel, err := c.client.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	sent := make(chan struct{})
	go func() {
		_, _ = io.Copy(channel, far)
		close(sent)
		channel.Close()
	}()
	go func() {
		_, _ = io.Copy(far, channel)
		far.Close()
	}()
	return &tunnel{Conn: near, channel: channel, sent: sent, address: tunnelAddr(address)}, nil
}

func (t *tunnel) RemoteAddr() net.Addr { return t.address }

// drainTime is how long a closed tunnel may take to send what was written to it.
const drainTime = 5 * time.Second

func (t *tunnel) Close() error {
	err := t.Conn.Close()
	go func() {
		select {
		case <-t.sent:
		case <-time.After(drainTime):
			t.channel.Close() // frees the copy that hangs
		}
	}()
	return err
}
