package remote

import (
	"context"
	"io"
	"net"
	"time"
)

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
		timer := time.NewTimer(drainTime)
		defer timer.Stop()
		select {
		case <-t.sent:
		case <-timer.C:
			t.channel.Close() // frees the copy that hangs
		}
	}()
	return err
}
