package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// A server counts a session (MaxSessions in sshd_config(5)) until its process is gone, a moment after the client has heard of its end.
const (
	freedFirst = 20 * time.Millisecond
	freedMost  = 320 * time.Millisecond
)

// run runs the command. A connection that is not allowed one more session gets a moment if none of ours is running there, and the
// command goes over another connection if one is.
func (e *execution) run(ctx context.Context) error {
	for pause := freedFirst; ; {
		err := e.runOn(ctx, e.conn)
		var refused *ssh.OpenChannelError
		switch {
		case !errors.As(err, &refused):
			return err
		case !e.conn.served.Load():
			return e.noSession("the server opens no session on a connection that has none: MaxSessions may be 0", err)
		case e.conn.sessions.Load() == 0 && pause <= freedMost:
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			pause *= 2
			continue
		}
		next, err := e.host.another(ctx)
		if err != nil {
			return e.noSession(fmt.Sprintf("the server allows no more sessions on this connection (MaxSessions), and another connection failed: %s", err), err)
		}
		e.conn, pause = next, freedFirst
	}
}

func (e *execution) noSession(detail string, err error) error {
	return &reason.Error{ID: reason.SSHSessionRefused, Host: e.host.id, Doing: e.doing, Detail: detail, Err: err}
}

// another returns a further connection to the host on which nothing runs, a new one if there is none. It is kept for later
// commands, and is as good as the first for those who lose it: they try again over the first.
func (h *Host) another(ctx context.Context) (*conn, error) {
	h.mu.Lock()
	h.others = slices.DeleteFunc(h.others, func(c *conn) bool { return !c.alive() })
	at := slices.IndexFunc(h.others, func(c *conn) bool { return c.sessions.Load() == 0 })
	if at >= 0 {
		defer h.mu.Unlock()
		return h.others[at], nil
	}
	key := h.conn.hostKey
	h.mu.Unlock()
	c, err := h.dialer.connect(ctx, h.target, h.id, key, h.dialer.opt.ConnectTimeout)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others = append(h.others, c)
	return c, nil
}

// leaveOthers ends the further connections.
func (h *Host) leaveOthers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.others {
		c.close(errClosed)
	}
	h.others = nil
}
