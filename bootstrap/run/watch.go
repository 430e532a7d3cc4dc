package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/scripts/runner"
)

// Watch follows what other runs do on the engine's hosts, batch after batch and each from its first event on, until nobody
// holds the cluster on any of planes, its control planes, and nothing runs any more. It changes nothing. left is called, before
// Watch returns, when the cluster was let go of and its batches still run.
//
// The error joins a *reason.Error for each step that failed and was not done later; when ctx ends it is ctx's.
func (e *Engine) Watch(ctx context.Context, planes []string, left func()) error {
	w := &watcher{engine: e, planes: planes, left: left, locked: map[string]bool{}, unseen: len(e.Hosts), over: make(chan struct{}), failed: map[graph.Ref]*reason.Error{}}
	var hosts sync.WaitGroup
	for id := range e.Hosts {
		hosts.Go(func() { w.host(ctx, e.Hosts[id]) })
	}
	hosts.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving != nil {
		w.leaving.Stop()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return w.failures()
}

// watcher knows what runs on all hosts.
type watcher struct {
	engine *Engine
	planes []string
	left   func()
	over   chan struct{} // closed when there is nothing more to see

	mu        sync.Mutex
	unseen    int             // hosts that were not looked at yet
	locked    map[string]bool // the control planes on which somebody holds the cluster
	following int             // batches
	ended     bool
	leaving   *time.Timer // until it is sure that batches were left; nil: nothing looks like that
	failed    map[graph.Ref]*reason.Error
	order     []graph.Ref // of what failed
}

// change does something to what is known, and ends the watch when that says so.
func (w *watcher) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	if !w.ended && w.unseen == 0 && len(w.locked) == 0 && w.following == 0 {
		w.ended = true
		close(w.over)
	}
}

func (w *watcher) isOver() bool { return closed(w.over) }

// tellLeft says that batches run which nobody steers, if that is so still.
func (w *watcher) tellLeft() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.locked) == 0 && w.following > 0 {
		w.left()
	}
}

// host watches one host, over as many connections as it takes, and returns when every batch it found there has ended.
func (w *watcher) host(ctx context.Context, h Host) {
	own, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	v := &view{watcher: w, host: h, ctx: own, refuse: refuse, known: map[string]bool{}}
	defer v.batches.Wait()
	defer v.seen()
	mute := &reason.Error{ID: reason.HostUnending, Host: h.ID(), Detail: "the host answers, and does not say what runs there"}
	v.limit = time.AfterFunc(settleTime, func() { refuse(mute) })
	defer v.limit.Stop()
	var away time.Duration // since something was heard
	for lost, brief := 0, 0; !w.isOver(); {
		asked := time.Now()
		v.partial, v.heard = nil, false
		if !v.looked {
			v.limit.Reset(settleTime)
		}
		err := w.engine.runLongLived(own, h, "watch", runner.Watch, nil, w.over, v)
		v.limit.Stop()
		switch {
		case ctx.Err() != nil, w.isOver():
			return
		case own.Err() != nil:
			w.gone(h, context.Cause(own))
			return
		case errors.Is(err, remote.ErrLost):
			if lost++; v.heard {
				lost, away = 1, 0
			}
			begun := time.Now()
			if err := w.back(ctx, h, lost, away); err != nil {
				w.gone(h, err)
				return
			}
			away += time.Since(begun)
		case err != nil:
			w.gone(h, w.engine.commandError(h.ID(), "watching the host", err))
			return
		case time.Since(asked) > w.engine.heartbeat(): // it ended by itself: this machine slept, say, and nothing was sent
			brief = 0
		default:
			if brief++; brief > oddEnds {
				w.gone(h, w.engine.commandError(h.ID(), "watching the host", errors.New("it ends at once, again and again")))
				return
			}
		}
	}
}

// back brings a lost host back, which was away for so long before, unless there is nothing more to see first.
func (w *watcher) back(ctx context.Context, h Host, lost int, away time.Duration) error {
	ctx, cancel := until(ctx, w.over)
	defer cancel()
	if err := w.engine.back(ctx, h, lost, away); err != nil && !w.isOver() {
		return err
	}
	return nil
}

// gone says that a host can no longer be watched.
func (w *watcher) gone(h Host, err error) {
	w.change(func() {
		delete(w.locked, h.ID())
		w.fail(graph.Ref{Host: h.ID()}, asReason(h.ID(), err))
	})
}

func asReason(host string, err error) *reason.Error {
	if known, ok := errors.AsType[*reason.Error](err); ok {
		return known
	}
	return &reason.Error{ID: reason.SSHLost, Host: host, Err: err}
}

// fail keeps the failure of a step; nil: it went well after all, or at once.
func (w *watcher) fail(step graph.Ref, err *reason.Error) {
	if err == nil {
		delete(w.failed, step)
		return
	}
	w.failed[step] = err
	w.order = append(w.order, step)
}

func (w *watcher) failures() error {
	var errs []error
	for _, step := range w.order {
		err := w.failed[step]
		if err == nil {
			continue
		}
		delete(w.failed, step) // it may have failed more than once
		if mayPass(err) {      // it did not, and was not told as a failure yet
			w.engine.emit(event.Event{Host: step.Host, Step: step.ID, Kind: event.Error, Reason: string(err.ID), Text: err.What(), Exit: err.Exit})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// mostBatches is how many batches a host may name: an honest one keeps a handful.
const mostBatches = 1000

// view is what watch.sh says of a host.
type view struct {
	*watcher
	host    Host
	ctx     context.Context
	refuse  context.CancelCauseFunc // ends it for this host
	looked  bool                    // once
	limit   *time.Timer             // until it must have looked
	known   map[string]bool         // batches
	batches sync.WaitGroup
	partial []byte
	heard   bool // anything, over the connection there is
}

// Write takes a piece of what watch.sh prints, cut anywhere.
func (v *view) Write(p []byte) (int, error) {
	v.heard = true
	v.partial = append(v.partial, p...)
	for {
		line, rest, found := bytes.Cut(v.partial, []byte{'\n'})
		if !found {
			v.partial = v.partial[max(0, len(v.partial)-replyKept):]
			return len(p), nil
		}
		v.line(string(line))
		v.partial = rest
	}
}

func (v *view) line(line string) {
	word, batch, _ := strings.Cut(line, " ")
	switch word {
	case "held", "free":
		if slices.Contains(v.planes, v.host.ID()) {
			v.noteLock(word == "held")
		}
	case "looked":
		v.seen()
	case "runs", "ended":
		if !v.known[batch] && len(v.known) == mostBatches {
			v.refuse(&reason.Error{ID: reason.HostOutputTooLarge, Host: v.host.ID(), Detail: fmt.Sprintf("it names more than %d batches", mostBatches)})
			return
		}
		// What had ended before the first look is history; later it was too quick for the eye, or the link was lost.
		if !v.known[batch] && (word == "runs" || v.looked) {
			v.follow(batch)
		}
		v.known[batch] = true
	}
}

// seen says that the host was looked at, or that it cannot be.
func (v *view) seen() {
	if !v.looked {
		v.looked = true
		v.limit.Stop()
		v.change(func() { v.unseen-- })
	}
}

// noteLock notes whether somebody holds the cluster. A run that is at its end lets go of it when its last batches have ended,
// of which this watch may hear a little later; one that was killed leaves them running.
func (v *view) noteLock(held bool) {
	v.change(func() {
		before := len(v.locked) > 0
		if delete(v.locked, v.host.ID()); held {
			v.locked[v.host.ID()] = true
		}
		if before && len(v.locked) == 0 && v.following > 0 {
			if v.leaving != nil {
				v.leaving.Stop()
			}
			v.leaving = time.AfterFunc(v.engine.heartbeatTimeout()/4, v.tellLeft)
		}
	})
}

func (v *view) follow(batch string) {
	v.change(func() { v.following++ })
	v.batches.Go(func() {
		ended := func(step string, err *reason.Error) {
			v.change(func() { v.fail(graph.Ref{Host: v.host.ID(), ID: step}, err) })
		}
		if err := v.engine.attach(v.ctx, v.host.ID(), batch, &observer{ended: ended, retried: true}); err != nil && v.ctx.Err() == nil {
			ended("", asReason(v.host.ID(), err))
		}
		v.change(func() { v.following-- })
	})
}
