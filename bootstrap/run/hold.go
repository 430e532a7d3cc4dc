package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/scripts/runner"
)

// releaseTime is how long a host may take to let go of a hold.
const releaseTime = 10 * time.Second

// Holding does work while this run holds the cluster on host, its control plane: no other run can hold it then. command is
// what the others are told this one does; no secret. Where another run has the cluster, work is not begun and the error's
// reason is HOST_BUSY.
//
// A lost connection takes the hold along, which is taken again as soon as the host is back. If another run was faster, or
// the host stays away, work's context ends, so that nothing new is started, and the error says why.
func (e *Engine) Holding(ctx context.Context, host, command string, work func(context.Context) error) error {
	h := &hold{engine: e, host: e.Hosts[host], command: command, held: make(chan struct{}), over: make(chan struct{})}
	if h.host == nil {
		return fmt.Errorf("host %s: no connection to this host", host)
	}
	within, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	// The hold does not end with ctx: what was begun is heard of before others get the cluster.
	kept, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	ended := make(chan error, 1)
	go func() {
		err := h.keep(kept)
		ended <- err
		lose(err)
	}()
	select {
	case <-h.held:
	case err := <-ended:
		return err
	case <-ctx.Done():
		return &reason.Error{ID: reason.Cancelled, Host: host, Doing: holding, Err: context.Cause(ctx), Detail: "cancelled; nothing was begun"}
	}
	err := work(within)
	close(h.over)
	timer := time.AfterFunc(releaseTime, drop)
	defer timer.Stop()
	if lost := <-ended; lost != nil {
		return errors.Join(withoutCancelled(err), lost)
	}
	return err
}

const holding = "taking hold of the cluster"

// withoutCancelled leaves out of an error what was cut short: why is known better.
func withoutCancelled(err error) error {
	var rest []error
	for _, e := range reason.All(err) {
		if e.ID != reason.Cancelled {
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

// hold is a run's hold on a cluster, over as many connections as it takes.
type hold struct {
	engine  *Engine
	host    Host
	command string
	held    chan struct{} // closed when the run has the cluster for the first time
	over    chan struct{} // closed when the run needs it no more
}

// keep holds the cluster until the hold is over, which is no error.
func (h *hold) keep(ctx context.Context) error {
	first := sync.OnceFunc(func() { close(h.held) })
	lost, odd := 0, 0
	for {
		had := false
		r := &reply{held: func() { first(); had, lost, odd = true, 0, 0 }}
		err := h.engine.lasting(ctx, h.host, "hold", runner.Hold, []string{h.engine.Run, h.engine.By, h.command}, h.over, r)
		switch {
		case h.isOver(), ctx.Err() != nil:
			return nil
		case r.busy:
			return h.busy(r)
		case errors.Is(err, remote.ErrLost):
			lost++
			if err := h.reconnect(ctx, lost); err != nil {
				return err
			}
		case err != nil:
			failed := h.engine.commandError(h.host.ID(), holding, err)
			if odd++; odd > oddEnds || !h.began() {
				return failed
			}
			if err := h.again(ctx, odd, failed); err != nil || h.isOver() {
				return nil
			}
		case !had:
			return h.engine.commandError(h.host.ID(), holding, errors.New("the host did not say who has it"))
		}
		// It ended by itself: this machine slept, say, and nothing was sent.
	}
}

// began reports whether the run had the cluster once.
func (h *hold) began() bool { return closed(h.held) }

func (h *hold) isOver() bool { return closed(h.over) }

// again waits before the next try, unless the hold is over before.
func (h *hold) again(ctx context.Context, try int, failed error) error {
	ctx, cancel := until(ctx, h.over)
	defer cancel()
	return h.engine.again(ctx, h.host, try, failed)
}

// reconnect brings the lost host back, unless the hold is over before.
func (h *hold) reconnect(ctx context.Context, lost int) error {
	ctx, cancel := until(ctx, h.over)
	defer cancel()
	err := h.engine.back(ctx, h.host, lost, 0)
	if err == nil || h.isOver() {
		return nil
	}
	return awayError(h.host.ID(), "the control plane did not come back, and without the hold on the cluster nothing new is begun: ", err)
}

// busy says that another run has the cluster.
func (h *hold) busy(r *reply) error {
	detail := "the cluster has just been taken by " + r.holder()
	if h.began() {
		detail += "; this run had lost it with the connection: nothing new is begun, and what runs on the hosts goes on"
	}
	return &reason.Error{ID: reason.HostBusy, Host: h.host.ID(), Detail: detail}
}

// reply is what hold.sh prints.
type reply struct {
	held    func()
	busy    bool
	known   []string // of the other run, key=value
	partial []byte
}

// replyKept is how much of a line is kept: a host may send anything.
const replyKept = 4 << 10

func (r *reply) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			if len(r.partial) < replyKept {
				r.partial = append(r.partial, c)
			}
			continue
		}
		switch line := string(r.partial); {
		case line == "held":
			r.held()
		case line == "busy":
			r.busy = true
		case r.busy && len(r.known) < 10:
			r.known = append(r.known, line)
		}
		r.partial = nil
	}
	return len(p), nil
}

// holder describes the other run.
func (r *reply) holder() string {
	var now time.Time
	for _, line := range r.known {
		if text, found := strings.CutPrefix(line, "now="); found {
			seconds, _ := strconv.ParseInt(text, 10, 64)
			now = time.Unix(seconds, 0)
		}
	}
	o, err := facts.ParseOperator(r.known)
	if err != nil {
		o = &facts.Operator{}
	}
	return o.Describe(now)
}
