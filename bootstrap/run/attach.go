package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Attach follows a batch that another run started on a host, to its end, and tells its events from the first on. It
// changes nothing. The error joins a *reason.Error for the step that failed; a batch that is no longer there is no error.
func (e *Engine) Attach(ctx context.Context, host, name string) error {
	return e.observe(ctx, host, name, false)
}

// Stop asks a batch that another run started to come to an end, and follows it there: a step that only waits gives up, one
// that works is let finish, and no more steps begin. What did not come about is told, and is no error.
func (e *Engine) Stop(ctx context.Context, host, name string) error {
	return e.observe(ctx, host, name, true)
}

func (e *Engine) observe(ctx context.Context, host, name string, stop bool) error {
	var failures []error
	ended := func(_ string, err *reason.Error) {
		if err != nil {
			failures = append(failures, err)
		}
	}
	err := e.attach(ctx, host, name, &observer{stopped: stop, ended: ended})
	return errors.Join(append(failures, err)...)
}

// attach follows a batch for g, who hears of its failures. The error is that of following.
func (e *Engine) attach(ctx context.Context, host, name string, g *observer) error {
	h := e.Hosts[host]
	if h == nil {
		return fmt.Errorf("host %s: no connection to this host", host)
	}
	if !validRun.MatchString(name) {
		return fmt.Errorf("batch %q: only 0-9, a-z and - are allowed", name)
	}
	g.engine, g.host = e, host
	p := &deadline{listener: g, host: host, left: observedLimit, grace: e.grace()}
	b := &batch{engine: e, host: h, name: name, stop: g.stopped, reader: reader{listener: p, host: host, budget: e.Budget}, time: p}
	end, err := b.run(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return &reason.Error{ID: reason.Cancelled, Host: host, Step: g.step, Err: err,
			Detail: "cancelled; the unit kgpu-" + name + " goes on on the host"}
	case err != nil:
		return err
	case end == gone:
		g.fail(&reason.Error{ID: reason.StepInterrupted, Host: host, Step: g.step, Detail: wentDown})
	}
	return nil
}

// observer tells what a batch does that the engine knows no steps of.
type observer struct {
	engine  *Engine
	host    string
	step    string // that runs
	tail    tail
	stopped bool                                 // it was asked to: its failures are none
	retried bool                                 // by who began it: what may pass is no failure yet
	ended   func(step string, err *reason.Error) // hears how steps end; nil: well
	failed  bool                                 // a step: a batch ends with the first
}

func (g *observer) emit(step string, ev event.Event) {
	ev.Host, ev.Step = g.host, step
	g.engine.emit(ev)
}

func (g *observer) begun(step string, at int64) {
	g.step, g.tail = step, nil
	g.emit(step, event.Event{Kind: event.StepStart, Millis: ago(at, time.Now())})
}

// ago is how long a step goes on of which somebody hears late; 0: it began just now, or the host's clock is wrong.
func ago(at int64, now time.Time) int64 {
	d := now.Sub(time.UnixMilli(at))
	if d < time.Second || d > 24*time.Hour {
		return 0
	}
	return d.Milliseconds()
}

func (g *observer) logged(step, text string) {
	g.tail.add(text)
	g.emit(step, event.Event{Kind: event.Log, Text: text})
}

func (g *observer) waiting(step, what string) {
	g.emit(step, event.Event{Kind: event.Wait, Text: what})
}

func (g *observer) warned(_, text string) { g.engine.Warnings.add(g.host, text) }

func (g *observer) output(_, name string, value []byte) {
	if g.engine.Heard != nil {
		g.engine.Heard(g.host, name, value)
	}
}

func (g *observer) done(step string, d done) {
	if d.exit == 0 {
		g.emit(step, event.Event{Kind: event.StepDone, Millis: d.millis})
		g.ended(step, nil)
		return
	}
	g.fail(failure(g.host, step, d, g.tail))
}

// mayPass reports whether who began a step may begin it again after this.
func mayPass(err *reason.Error) bool {
	return err.ID == reason.StepInterrupted || err.Exit != nil && *err.Exit == exitTransient
}

func (g *observer) fail(err *reason.Error) {
	if g.failed {
		return
	}
	g.failed = true
	if g.stopped {
		g.emit(err.Step, event.Event{Kind: event.Warning, Text: err.What()})
		return
	}
	if g.retried && mayPass(err) {
		g.emit(err.Step, event.Event{Kind: event.Wait, Reason: string(err.ID), Text: err.What() + "; it may be begun again"})
		g.ended(err.Step, err)
		return
	}
	g.emit(err.Step, event.Event{Kind: event.Error, Reason: string(err.ID), Text: err.What(), Exit: err.Exit})
	g.ended(err.Step, err)
}
