package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Command is a command to run on a host.
type Command struct {
	Name string // what events and errors call it: "facts"
	Line string // constant text for sh; never user data
	Root bool   // as root, through sudo unless the user is root

	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // may be nil; the end of stderr is kept for the error anyway
}

const (
	stderrKept = 4 << 10
	// graceTime is how long an ended or cancelled command may take to let go of its streams. sshd does not always close
	// the channel of a command that is cancelled: root's commands it cannot send signals to.
	graceTime = 250 * time.Millisecond
)

// Run runs c and waits for it. It returns nil when c exits with status 0, an *ExitError when it fails, a *reason.Error
// with SSH_LOST (also ErrLost) when the connection dies and with SUDO_REFUSED when sudo does not let c run. When ctx
// ends, c is sent SIGTERM and Run returns at once; c may go on running. When a writer fails, the rest of the output is
// dropped and Run returns that error if c succeeds. The writers are not used after Run returns.
func (h *Host) Run(ctx context.Context, c Command) error {
	return h.run(ctx, c, "running "+c.Name)
}

// run is Run; doing is what errors call it.
func (h *Host) run(ctx context.Context, c Command, doing string) error {
	start := time.Now()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	e := &execution{
		host: h, command: c, doing: doing, conn: h.current(),
		stdout: newGate(c.Stdout),
		tail:   &tail{limit: stderrKept},
	}
	e.stderr = newGate(c.Stderr, e.tail)
	stderr := io.Writer(e.stderr)
	if c.Root && h.target.user != defaultUser {
		e.sudo = newSudo(h.password, e.stderr)
		stderr = e.sudo
	}
	e.openOut, e.openErr, e.word = openings(e.stdout, stderr, func(said []byte) {
		end(&reason.Error{ID: reason.HostOutputTooLarge, Host: h.id, Doing: doing, Detail: "before the command runs, " + tooLong(openingMost, said)})
	})
	err := e.run(ctx)
	dropped := errors.Join(e.stdout.shut(), e.stderr.shut())
	err = e.explain(ctx, err)
	if err == nil && dropped != nil {
		err = fmt.Errorf("%s: %s: passing its output on: %w", h.id, c.Name, dropped)
	}

	ev := event.Event{
		Time: time.Now(), Run: h.dialer.opt.Run, Host: h.id, Kind: event.Command,
		Millis: time.Since(start).Milliseconds(), Text: c.Name,
	}
	var exit *ExitError
	var known *reason.Error
	switch {
	case err == nil:
		ev.Exit = new(int)
	case errors.As(err, &exit):
		ev.Exit = &exit.Status
	case errors.As(err, &known):
		ev.Reason, ev.Exit = string(known.ID), known.Exit
	case ctx.Err() != nil:
		ev.Reason = string(reason.Cancelled)
	}
	h.dialer.opt.Events.Emit(ev)
	return err
}

// execution is one run of a command.
type execution struct {
	host    *Host
	command Command
	doing   string
	conn    *conn
	stdout  *gate
	stderr  *gate
	tail    *tail // the end of the command's stderr
	sudo    *sudo // nil: none needed

	openOut, openErr *opening
	word             string // that ends them
}

// runOn opens a session on c and waits for the command, for ctx or for the end of the connection, whichever is first.
func (e *execution) runOn(ctx context.Context, c *conn) error {
	opened := make(chan *ssh.Session, 1)
	done := make(chan error, 1)
	go func() {
		s, err := c.client.NewSession()
		if err != nil {
			close(opened)
			done <- err
			return
		}
		c.served.Store(true)
		c.sessions.Add(1)
		opened <- s
		err = e.session(s)
		c.sessions.Add(-1)
		done <- err
		s.Close()
	}()
	select {
	case err := <-done:
		return err
	case <-c.ctx.Done():
	case <-ctx.Done():
		go func() {
			if s := <-opened; s != nil {
				_ = s.Signal(ssh.SIGTERM)
				s.Close()
			}
		}()
	}
	select {
	case err := <-done:
		if err == nil {
			err = ctx.Err() // one whose input ends early may call that a success
		}
		return err
	case <-time.After(graceTime):
		return errors.Join(ctx.Err(), fmt.Errorf("%s did not let go of its streams within %s", e.command.Name, graceTime))
	}
}

// session runs the command in s and returns what ssh.Session.Wait does.
func (e *execution) session(s *ssh.Session) error {
	stdin, err := s.StdinPipe()
	if err != nil {
		return err
	}
	s.Stdout, s.Stderr = e.openOut, e.openErr
	line, ready := e.command.Line, closedChan
	if e.sudo != nil {
		e.sudo.attach(s, stdin)
		line, ready = e.sudo.line(line), e.sudo.ready()
	}
	if err := s.Start(shellLine(line, e.word)); err != nil {
		if hungUp(err) {
			return err
		}
		return errNotTaken // the ssh package's error has nothing but the whole line
	}
	ended := make(chan struct{})
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		select {
		case <-ready:
		case <-ended:
			return
		case <-time.After(sudoTimeout):
			e.sudo.giveUp()
			return
		}
		if e.command.Stdin != nil {
			_, _ = io.Copy(stdin, e.command.Stdin) // a command need not read all of it
		}
		_ = stdin.Close()
	}()
	err = s.Wait()
	close(ended)
	s.Close() // frees the copy if it hangs in the channel
	select {
	case <-copied:
	case <-time.After(graceTime): // it hangs in the command's own reader, which is the caller's
	}
	return err
}

// explain turns what happened into the error that Run returns.
func (e *execution) explain(ctx context.Context, err error) error {
	h := e.host
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	var met *reason.Error
	begun := e.openOut.isOver() && e.openErr.isOver()
	switch {
	case err == nil && begun && (e.sudo == nil || e.sudo.isRoot()):
		return nil
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &met) && met.ID == reason.HostOutputTooLarge:
		return met
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &met) && met.ID == reason.HostUnending && !begun:
		return e.notRun(nil)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %s: %w", h.id, e.command.Name, context.Cause(ctx))
	case errors.As(err, &met):
		return met
	case errors.As(err, &exit) || err == nil:
		status, signal := 0, ""
		if exit != nil {
			status, signal = exit.ExitStatus(), exit.Signal()
		}
		if !begun && signal == "" { // with one, the host may be going down
			return e.notRun(&status)
		}
		if e.sudo != nil && !e.sudo.isRoot() {
			return e.sudo.refusal(h.id, e.doing, status)
		}
		return &ExitError{Host: h.id, Command: e.command.Name, Status: status, Signal: signal, Stderr: e.tail.String()}
	case errors.Is(err, errNotTaken):
		return e.notRun(nil)
	case e.sudo != nil && e.sudo.wasRefused():
		if !begun {
			return e.notRun(nil)
		}
		return e.sudo.refusal(h.id, e.doing, 1)
	case errors.As(err, &missing) || e.conn.diedWith(err):
		return h.lost(e.conn, e.doing, err)
	default:
		return inHost(fmt.Errorf("%s: %w", e.command.Name, err), h.id)
	}
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

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
