package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// conn is one live SSH connection.
type conn struct {
	client  *ssh.Client
	raw     *watched
	hostKey ssh.PublicKey
	via     *conn // the bastion's; nil: none

	ctx   context.Context // ends when the connection is dead; its cause says why
	close context.CancelCauseFunc

	sessions atomic.Int32 // of ours that run on it
	served   atomic.Bool  // the server has opened one

	mu      sync.Mutex
	users   int // connections through this one, and attempts
	retired bool
}

// newConn watches over a connection that has just been opened, until it dies or ctx ends.
func newConn(ctx context.Context, client *ssh.Client, raw *watched, via *conn, hostKey ssh.PublicKey, every, timeout time.Duration) *conn {
	c := &conn{client: client, raw: raw, via: via, hostKey: hostKey}
	c.ctx, c.close = context.WithCancelCause(ctx)
	if via != nil {
		via.use(1)
		context.AfterFunc(c.ctx, func() { via.use(-1) })
	}
	context.AfterFunc(c.ctx, func() { raw.Close() }) // not the client: that would wait for a write that hangs
	go func() { c.close(client.Wait()) }()
	go c.keepalive(every, timeout)
	return c
}

func (c *conn) alive() bool { return c.ctx.Err() == nil }

// use counts who goes through this connection.
func (c *conn) use(n int) {
	c.mu.Lock()
	c.users += n
	over := c.retired && c.users == 0
	c.mu.Unlock()
	if over {
		c.close(errClosed)
	}
}

// retire ends the connection with the last that goes through it.
func (c *conn) retire() {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.use(0)
}

// echoTime is how much later than a channel the connection may learn that it is dead.
const echoTime = 2 * time.Second

// diedWith reports whether err comes from the connection's death, of which a channel may hear a little earlier.
func (c *conn) diedWith(err error) bool {
	var refused *ssh.OpenChannelError
	switch {
	case !c.alive() || hungUp(err):
		return true
	case errors.As(err, &refused):
		return false
	}
	select {
	case <-c.ctx.Done():
		return true
	case <-time.After(echoTime):
		return false
	}
}

// lost ends the connection, if err does not come from its end already, and returns the error of whatever was going on.
func (c *conn) lost(err error) error {
	c.close(err)
	cause := context.Cause(c.ctx)
	if hungUp(cause) {
		cause = fmt.Errorf("the other side hung up: %w", cause)
	}
	return fmt.Errorf("%w: %w", ErrLost, cause)
}

// keepalive asks the server for a sign of life again and again and closes the connection when there is none. Any byte
// counts as one, not just the answer, which may stand in a queue behind a lot of data.
func (c *conn) keepalive(every, timeout time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		asked := time.Now()
		answer := make(chan struct{})
		go func() {
			defer close(answer)
			_, _, _ = c.client.SendRequest("keepalive@openssh.com", true, nil) // fails when the connection dies; Wait tells
		}()
		if !c.answered(answer, asked, timeout) {
			c.close(fmt.Errorf("%w for %s", errSilent, timeout))
			return
		}
	}
}

// answered waits for the answer; it gives up when nothing at all was received for the timeout.
func (c *conn) answered(answer <-chan struct{}, asked time.Time, timeout time.Duration) bool {
	for {
		since := asked
		if last := c.raw.lastRead(); last.After(since) {
			since = last
		}
		left := timeout - time.Since(since)
		if left <= 0 {
			return false
		}
		select {
		case <-answer:
			return true
		case <-c.ctx.Done():
			return true
		case <-time.After(left):
		}
	}
}

// watched remembers when something was received last.
type watched struct {
	net.Conn
	start time.Time    // has a monotonic clock, which the wall clock's jumps do not disturb
	last  atomic.Int64 // nanoseconds since start
}

func watch(c net.Conn) *watched { return &watched{Conn: c, start: time.Now()} }

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.last.Store(int64(time.Since(w.start)))
	}
	return n, err
}

func (w *watched) lastRead() time.Time { return w.start.Add(time.Duration(w.last.Load())) }
