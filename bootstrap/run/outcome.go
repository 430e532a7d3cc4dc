package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/duration"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// exitTransient is EX_TEMPFAIL: the step may succeed when it is tried again.
const exitTransient = 75

// taskListener tells the schedule what a batch does.
type taskListener struct {
	schedule *schedule
	tasks    map[string]*task // by step ID: a batch is one host's. A step that ended is no longer in it: it cannot end twice
	current  string           // step that runs; empty: none yet
	tail     tail             // of the step that runs
	outputs  map[string][]byte
	heard    bool // a step ended
}

func newTaskListener(s *schedule, tasks []*task) *taskListener {
	l := &taskListener{schedule: s, tasks: make(map[string]*task, len(tasks))}
	for _, t := range tasks {
		l.tasks[t.step.ID] = t
	}
	return l
}

func (l *taskListener) begun(step string, _ int64) {
	if t := l.tasks[step]; t != nil && l.current != step {
		l.current = step
		l.tail, l.outputs = nil, map[string][]byte{}
		t.tries++
		l.schedule.emit(t, event.Event{Kind: event.StepStart, Text: t.step.Title})
	}
}

func (l *taskListener) logged(step, text string) {
	if t := l.tasks[step]; t != nil {
		l.tail.add(text)
		l.schedule.emit(t, event.Event{Kind: event.Log, Text: text})
	}
}

func (l *taskListener) waiting(step, what string) {
	if t := l.tasks[step]; t != nil {
		l.schedule.emit(t, event.Event{Kind: event.Wait, Text: what})
	}
}

func (l *taskListener) warned(step, text string) {
	if t := l.tasks[step]; t != nil {
		l.schedule.engine.Warnings.add(t.step.Host, text)
	}
}

func (l *taskListener) output(step, name string, content []byte) {
	if l.tasks[step] != nil && l.current == step {
		l.outputs[name] = content
	}
}

func (l *taskListener) done(step string, d done) {
	t := l.tasks[step]
	if t == nil {
		return
	}
	delete(l.tasks, step)
	l.heard = true
	t.took = time.Duration(d.millis) * time.Millisecond
	switch {
	case d.exit == 0 && l.current != step:
		l.schedule.done(t, nil)
	case d.exit == 0:
		l.schedule.done(t, l.outputs)
	case d.exit == exitTransient && t.step.Retry == graph.Transient && t.tries < tries && t.paused < l.schedule.engine.timeouts().Transient:
		l.tryAgain(t, d)
	case d.reason == string(reason.HostBusy), d.reason == string(reason.Cancelled): // another run has the host, or wants it
		l.schedule.failed(t, l.stepFailure(t, d), wholeHost)
	default:
		l.schedule.failed(t, l.stepFailure(t, d), stepOnly)
	}
}

func (l *taskListener) tryAgain(t *task, d done) {
	e := l.schedule.engine
	pause := min(e.before(t.tries), e.timeouts().Transient-t.paused)
	t.paused += pause
	why := cmp.Or(d.detail, "it failed for a reason that may pass")
	l.schedule.emit(t, event.Event{Kind: event.Wait, Reason: d.reason,
		Text: fmt.Sprintf("%s; try %d of %d in %s", why, t.tries+1, tries, duration.Short(pause))})
	l.schedule.again(t, pause)
}

func (l *taskListener) stepFailure(t *task, d done) *reason.Error {
	err := failure(t.step.Host, t.step.ID, d, l.tail)
	err.Doing = t.step.Title
	return err
}

// failure is the error of a step that ended badly. A step that gave no detail is best described by its last words.
func failure(host, step string, d done, words tail) *reason.Error {
	err := &reason.Error{
		ID: reason.ID(d.reason), Host: host, Step: step, Detail: cmp.Or(d.detail, words.last()), Stderr: words.String(),
	}
	if !reason.Known(err.ID) {
		err.ID = reason.StepFailed
	}
	if err.ID != reason.HostBusy && err.ID != reason.StepTimeout && err.ID != reason.Cancelled {
		err.Exit = &d.exit
	}
	return err
}

// batchEnded says how a batch ended, or why its end was not heard, after the listener said what it could.
func (l *taskListener) batchEnded(ctx context.Context, tasks []*task, end ending, err error) {
	open := firstOpen(tasks)
	switch {
	case open == nil:
	case err != nil && ctx.Err() != nil:
		return // what the host has goes on there
	case err != nil:
		l.schedule.failed(open, l.atStep(open, err), wholeHost)
	case end == gone:
		l.interrupted(open)
	case !l.heard:
		l.schedule.failed(open, l.atStep(open, errors.New("the batch ended without a word about its steps")), wholeHost)
	}
	l.schedule.putBack(tasks)
}

func firstOpen(tasks []*task) *task {
	for _, t := range tasks {
		if t.outcome == Running {
			return t
		}
	}
	return nil
}

const wentDown = "the host went down, or its unit was killed, during this step"

// interrupted handles a batch whose host went down: the step it was at is begun once more.
func (l *taskListener) interrupted(t *task) {
	if t.interrupted {
		l.schedule.failed(t, &reason.Error{ID: reason.StepInterrupted, Host: t.step.Host, Step: t.step.ID, Doing: t.step.Title,
			Detail: wentDown + ", twice", Stderr: l.tail.String()}, stepOnly)
		return
	}
	t.interrupted = true
	l.schedule.emit(t, event.Event{Kind: event.Wait, Reason: string(reason.StepInterrupted), Text: wentDown + "; it is begun once more"})
}

// atStep makes err the failure of this step.
func (l *taskListener) atStep(t *task, err error) *reason.Error {
	out := reason.Error{ID: reason.StepFailed, Err: err}
	if known, ok := errors.AsType[*reason.Error](err); ok {
		out = *known
	}
	out.Host, out.Step, out.Doing = t.step.Host, t.step.ID, cmp.Or(out.Doing, t.step.Title)
	return &out
}

// result sums up; cancelled is ctx's error.
func (s *schedule) result(cancelled error) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Result{Outputs: maps.Clone(s.outputs)}
	var failures []error
	left := 0
	following := map[string]bool{}
	for _, t := range s.tasks {
		r.Steps = append(r.Steps, StepResult{Ref: t.step.Ref, Outcome: t.outcome, Tries: t.tries, Interrupted: t.interrupted, Took: t.took})
		switch {
		case t.outcome == Failed:
			failures = append(failures, t.err)
		case t.outcome == Running && !following[t.step.Host]:
			following[t.step.Host] = true
			failures = append(failures, s.cutShort(t, cancelled))
		case t.outcome == Pending:
			left++
		}
	}
	if left > 0 && len(following) == 0 {
		failures = append(failures, &reason.Error{ID: reason.Cancelled, Err: cancelled, Detail: "cancelled; left out: " + plural.Of(left, "step")})
	}
	return r, errors.Join(failures...)
}

func (s *schedule) cutShort(t *task, cancelled error) error {
	err := &reason.Error{ID: reason.Cancelled, Host: t.step.Host, Step: t.step.ID, Doing: t.step.Title, Err: cancelled,
		Detail: "cancelled; what was begun goes on on the host, in the unit kgpu-" + t.batch + ", and nothing more is started"}
	s.emit(t, event.Event{Kind: event.Error, Reason: string(err.ID), Text: err.Detail})
	return err
}

// tailLines is how much of a failed step's output its error keeps.
const tailLines = 15

// tail is the end of a step's output.
type tail []string

func (t *tail) add(line string) {
	*t = append(*t, line)
	if len(*t) > tailLines {
		*t = (*t)[1:]
	}
}

func (t tail) String() string { return strings.Join(t, "\n") }

// last is the last line that is not empty.
func (t tail) last() string {
	for i := len(t) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(t[i]); line != "" {
			return line
		}
	}
	return ""
}
