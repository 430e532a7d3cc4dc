package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/scripts/runner"
)

const (
	releaseTime = 10 * time.Second // that a host may take to let go of a lock
	toldAfter   = 5 * time.Second  // the time after which a wait for the lock is told
)

// Locked does work while this run holds the cluster on these hosts, a majority of its control planes: no other run can hold it
// then. They are taken one after the other. command is what the others are told this one does; no secret. Where another run has
// the cluster, work is not begun and the error's reason is HOST_BUSY.
//
// Each lock has a number, greater than those of all before it, which the batches carry that are begun under it: a host
// begins none with a lower one than it has seen.
//
// A lost connection takes the lock along, which is taken again as soon as the host is back. Meanwhile no batch begins
// anywhere. If another run was faster, even if it has come to its end since, or the host stays away, work's context ends, so
// that nothing new is started, and the error says why.
func (e *Engine) Locked(ctx context.Context, hosts []string, command string, work func(context.Context) error) error {
	if len(hosts) == 0 {
		return errors.New("there is no control plane to hold the cluster on")
	}
	host, rest := hosts[0], hosts[1:]
	if len(rest) > 0 {
		all := work
		work = func(ctx context.Context) error { return e.Locked(ctx, rest, command, all) }
	}
	h := &lock{engine: e, outer: lockOf(ctx), host: e.Hosts[host], command: command, held: make(chan struct{}), over: make(chan struct{})}
	h.first = sync.OnceFunc(func() { close(h.held) })
	if h.host == nil {
		return fmt.Errorf("host %s: no connection to this host", host)
	}
	within, lose := context.WithCancelCause(context.WithValue(ctx, lockKey{}, h))
	defer lose(nil)
	// The lock does not end with ctx: what was begun is heard of before others get the cluster.
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
		return &reason.Error{ID: reason.Cancelled, Host: host, Doing: locking, Err: context.Cause(ctx), Detail: "cancelled; nothing was begun"}
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

const locking = "locking the cluster"

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

// lock is a run's lock on a cluster on one of its control planes, over as many connections as it takes.
type lock struct {
	engine  *Engine
	outer   *lock // on the control plane that was taken before; nil: this is the first
	host    Host
	command string
	first   func()        // closes held
	held    chan struct{} // closed when the run has the cluster for the first time
	over    chan struct{} // closed when the run needs it no more

	mu        sync.Mutex
	has       bool          // the run has the cluster now, as far as it has heard
	sent      time.Duration // when it said the last that the host has answered to, by awake
	number    int64         // of the lock
	listeners []func()      // hear when that changes
}

type lockKey struct{}

// lockOf is the lock under which ctx's work is done; nil: none.
func lockOf(ctx context.Context) *lock {
	h, _ := ctx.Value(lockKey{}).(*lock)
	return h
}

// isConfirmed reports whether the run has the cluster now: each host has answered to something that was said so lately that it
// cannot have lost patience since. What is done without a lock needs none.
func (h *lock) isConfirmed() bool {
	if h == nil {
		return true
	}
	if !h.outer.isConfirmed() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.has && h.engine.awake() < h.sent+h.engine.heartbeatTimeout()
}

// whyUnconfirmed says why the lock is not confirmed.
func (h *lock) whyUnconfirmed() string {
	if !h.outer.isConfirmed() {
		return h.outer.whyUnconfirmed()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.has {
		return h.host.ID() + " has not confirmed since this machine slept, or the connection got slow"
	}
	return "was lost with the connection to " + h.host.ID()
}

// fence is the number of the lock, the highest of its hosts'; 0: work without one has none.
func (h *lock) fence() int64 {
	if h == nil {
		return 0
	}
	outer := h.outer.fence()
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(outer, h.number)
}

// tell lets somebody hear when isFirm changes.
func (h *lock) tell(changed func()) {
	if h == nil {
		return
	}
	h.outer.tell(changed)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, changed)
}

func (h *lock) set(change func()) {
	h.mu.Lock()
	change()
	listeners := h.listeners
	h.mu.Unlock()
	for _, changed := range listeners {
		changed()
	}
}

// keep holds the cluster until the lock is over, which is no error.
func (h *lock) keep(ctx context.Context) error {
	var away time.Duration // since the cluster was held last
	lost, odd, brief := 0, 0, 0
	for {
		var had time.Time
		r := &reply{held: func(int64) { had, away, lost, odd = time.Now(), 0, 0, 0 }}
		err := h.ask(ctx, r)
		switch {
		case h.isOver(), ctx.Err() != nil:
			return nil
		case r.busy:
			return h.busy(r)
		case r.changed:
			return h.changed()
		case given(err) != nil:
			return err
		case errors.Is(err, remote.ErrLost):
			lost++
			begun := time.Now()
			if err := h.reconnect(ctx, lost, away); err != nil {
				return err
			}
			away += time.Since(begun)
		case err != nil:
			failed := h.engine.commandError(h.host.ID(), locking, err)
			if odd++; odd > oddEnds || !h.began() {
				return failed
			}
			if err := h.again(ctx, odd, failed); err != nil || h.isOver() {
				return nil
			}
		case had.IsZero():
			return h.engine.commandError(h.host.ID(), locking, errors.New("the host did not say who has it"))
		case time.Since(had) > h.engine.heartbeat(): // it ended by itself: this machine slept, say, and nothing was sent
			brief = 0
		default:
			if brief++; brief > oddEnds {
				return h.engine.commandError(h.host.ID(), locking, errors.New("the host lets go of it at once, again and again"))
			}
		}
	}
}

// ask locks the cluster, and returns when that has ended. A host that answers has some time to say who has it, in which
// it may wait for the silence of this run's own former connection; after a while it is told what is waited for.
func (h *lock) ask(ctx context.Context, r *reply) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	e := h.engine
	limit := time.AfterFunc(2*e.heartbeatTimeout()+settleTime, func() {
		giveUp(&reason.Error{ID: reason.HostUnending, Host: h.host.ID(), Doing: locking, Detail: "the host answers, and does not say who has the cluster"})
	})
	defer limit.Stop()
	begun, said := time.Now(), e.awake()
	wait := event.Event{Host: h.host.ID(), Kind: event.Wait, Text: "for the lock on the cluster"}
	slow := time.AfterFunc(toldAfter, func() { e.emit(wait) })
	defer slow.Stop()
	took := r.held
	r.held = func(number int64) {
		limit.Stop()
		took(number)
		if !slow.Stop() {
			wait.Millis = max(1, time.Since(begun).Milliseconds())
			e.emit(wait)
		}
		h.set(func() { h.has, h.sent, h.number = true, said, number })
		h.first()
	}
	r.beat = func(sent time.Duration) {
		if sent <= e.awake() {
			h.set(func() { h.sent = max(h.sent, sent) })
		}
	}
	known := max(e.Fence, h.fence())
	err := e.runLongLived(ctx, h.host, "lock", runner.Lock, []string{e.Run, e.By, h.command, h.how(), strconv.FormatInt(known, 10)}, h.over, r)
	h.set(func() { h.has = false })
	if met := given(context.Cause(ctx)); met != nil {
		return met
	}
	return err
}

// how tells the host what this run knows of the lock.
func (h *lock) how() string {
	switch {
	case !h.began():
		return "first"
	case h.engine.Forgets:
		return "reset"
	}
	return "again"
}

// began reports whether the run had the cluster once.
func (h *lock) began() bool { return closed(h.held) }

func (h *lock) isOver() bool { return closed(h.over) }

// again waits before the next try, unless the lock is over before.
func (h *lock) again(ctx context.Context, try int, failed error) error {
	ctx, cancel := until(ctx, h.over)
	defer cancel()
	return h.engine.again(ctx, h.host, try, failed)
}

// reconnect brings the lost host back, which was away for so long before, unless the lock is over first.
func (h *lock) reconnect(ctx context.Context, lost int, away time.Duration) error {
	ctx, cancel := until(ctx, h.over)
	defer cancel()
	err := h.engine.back(ctx, h.host, lost, away)
	if err == nil || h.isOver() {
		return nil
	}
	return awayError(h.host.ID(), "the control plane did not come back, and without the lock on the cluster nothing new is begun: ", err)
}

// busy says that another run has the cluster.
func (h *lock) busy(r *reply) error {
	detail := "the cluster has just been taken by " + r.holder()
	if h.began() {
		detail += lostIt
	}
	return &reason.Error{ID: reason.HostBusy, Host: h.host.ID(), Detail: detail}
}

const lostIt = "; this run had lost it with the connection: nothing new is begun, and what runs on the hosts goes on"

// changed says that another run had the cluster while this one was cut off: what this one knows of the hosts is old.
func (h *lock) changed() error {
	return &reason.Error{ID: reason.HostBusy, Host: h.host.ID(), Detail: "another run had the cluster meanwhile" + lostIt,
		Advice: "run the same command again: it looks at the hosts anew"}
}

// reply is what lock.sh prints.
type reply struct {
	held    func(number int64)       // is called once
	beat    func(sent time.Duration) // is called when the host answers to what was said then
	has     bool
	busy    bool
	changed bool
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
		line := string(r.partial)
		word, text, _ := strings.Cut(line, " ")
		number, err := strconv.ParseInt(text, 10, 64)
		switch {
		case word == "held" && err == nil && number > 0 && !r.has:
			r.has = true
			r.held(number)
		case word == "beat" && err == nil && r.has:
			r.beat(time.Duration(number))
		case line == "busy":
			r.busy = true
		case line == "changed":
			r.changed = true
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
	o, err := facts.ParseLockHolder(r.known)
	if err != nil {
		o = &facts.LockHolder{}
	}
	return o.Describe(now)
}
