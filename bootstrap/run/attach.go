package run

import (
	"context"
	"errors"
	"fmt"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Attach follows a batch that another run started on a host, to its end, and tells its events from the first on. It
// changes nothing. The error joins a *reason.Error for the step that failed; a batch that is no longer there is no error.
func (e *Engine) Attach(ctx context.Context, host, name string) error {
	return e.attach(ctx, host, name, false)
}

// Stop asks a batch that another run started to come to an end, and follows it there: a step that only waits gives up, one
// that works is let finish, and no more steps begin. What did not come about is told, and is no error.
func (e *Engine) Stop(ctx context.Context, host, name string) error {
	return e.attach(ctx, host, name, true)
}

func (e *Engine) attach(ctx context.Context, host, name string, stop bool) error {
	h := e.Hosts[host]
	if h == nil {
		return fmt.Errorf("host %s: no connection to this host", host)
	}
	if !validRun.MatchString(name) {
		return fmt.Errorf("batch %q: only 0-9, a-z and - are allowed", name)
	}
	l := &guest{engine: e, host: host, stopped: stop}
	p := &patience{listener: l, host: host, left: guestLimit}
	b := &batch{engine: e, host: h, name: name, stop: stop, reader: reader{listener: p}, time: p}
	end, err := b.run(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return &reason.Error{ID: reason.Cancelled, Host: host, Step: l.step, Err: err,
			Detail: "cancelled; the unit kgpu-" + name + " goes on on the host"}
	case err != nil:
		return err
	case end == gone:
		l.fail(&reason.Error{ID: reason.StepInterrupted, Host: host, Step: l.step, Detail: wentDown})
	}
	return errors.Join(l.failures...)
}

// guest tells what a batch does that the engine knows no steps of.
type guest struct {
	engine   *Engine
	host     string
	step     string // that runs
	tail     tail
	failures []error
	stopped  bool // it was asked to: its failures are none
}

func (g *guest) emit(step string, ev event.Event) {
	ev.Host, ev.Step = g.host, step
	g.engine.emit(ev)
}

func (g *guest) begun(step string) {
	g.step, g.tail = step, nil
	g.emit(step, event.Event{Kind: event.StepStart})
}

func (g *guest) logged(step, text string) {
	g.tail.add(text)
	g.emit(step, event.Event{Kind: event.Log, Text: text})
}

func (g *guest) waiting(step, what string) {
	g.emit(step, event.Event{Kind: event.Wait, Text: what})
}

func (g *guest) output(string, string, []byte) {}

func (g *guest) done(step string, d done) {
	if d.exit == 0 {
		g.emit(step, event.Event{Kind: event.StepDone, Millis: d.millis})
		return
	}
	g.fail(failure(g.host, step, d, g.tail))
}

func (g *guest) fail(err *reason.Error) {
	if len(g.failures) > 0 {
		return // a batch ends with the first
	}
	if g.stopped {
		g.emit(err.Step, event.Event{Kind: event.Warning, Text: what(err)})
		return
	}
	g.emit(err.Step, event.Event{Kind: event.Error, Reason: string(err.ID), Text: what(err), Exit: err.Exit})
	g.failures = append(g.failures, err)
}
