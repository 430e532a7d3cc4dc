package run

import (
	"fmt"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// How long a host may take. Its runner ends a step that takes longer than the step's timeout; a host whose runner does not,
// or that only pretends to have one, is given up some time later.
const (
	observedLimit = 4 * time.Hour   // for all steps of a batch that the engine does not know
	settleTime    = 2 * time.Minute // to hear what was missed when the time is over and the connection was lost
	lateReturns   = 5               // how often there may be that
)

// deadline is a listener that ends a batch whose host answers and does not come to an end.
type deadline struct {
	listener
	host   string
	limits map[string]time.Duration // of the steps that are expected
	grace  time.Duration            // between steps

	mu    sync.Mutex
	step  string // that runs
	left  time.Duration
	since time.Time // when left was true
	late  int
	timer *time.Timer // runs while somebody listens
	end   func(error)
}

// withDeadline gives the host of these tasks its time.
func (e *Engine) withDeadline(l listener, host string, tasks []*task) *deadline {
	p := &deadline{listener: l, host: host, limits: map[string]time.Duration{}, left: e.grace(), grace: e.grace()}
	for _, t := range tasks {
		p.limits[t.step.ID] = t.step.Timeout + e.grace()
	}
	return p
}

// grace is what comes on top of a step's timeout: a wait for the package manager, and an absence, which may be the ten
// minutes that a host takes to go down.
func (e *Engine) grace() time.Duration {
	t := e.timeouts()
	return t.Lock + max(t.Link, t.Reboot, 10*time.Minute) + settleTime
}

// listen lets the time run and calls end when it is over, until the function that it returns is called.
func (p *deadline) listen(end func(error)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass()
	p.end = end
	if p.left <= 0 {
		p.late++
		p.left = settleTime
	}
	if p.late > lateReturns {
		p.left = 0
	}
	p.timer = time.AfterFunc(p.left, p.over)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer.Stop()
		p.timer, p.end = nil, nil
	}
}

// pass counts the time since it was last counted, the time that nobody could listen too.
func (p *deadline) pass() {
	now := time.Now()
	if !p.since.IsZero() {
		p.left -= now.Sub(p.since)
	}
	p.since = now
}

// give is the time for what comes next.
func (p *deadline) give(step string, d time.Duration) {
	p.step, p.left, p.since, p.late = step, d, time.Now(), 0
	if p.timer != nil {
		p.timer.Reset(d)
	}
}

func (p *deadline) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		return
	}
	what := "the next step"
	if p.step != "" {
		what = "the step " + p.step
	}
	p.end(&reason.Error{ID: reason.HostUnending, Host: p.host, Step: p.step,
		Detail: fmt.Sprintf("the host answers, and does not come to the end of %s; what was begun may go on there", what)})
}

// begun gives each step its own time, once.
func (p *deadline) begun(step string, at int64) {
	p.mu.Lock()
	if limit, ok := p.limits[step]; ok {
		delete(p.limits, step)
		p.give(step, limit)
	}
	p.mu.Unlock()
	p.listener.begun(step, at)
}

func (p *deadline) done(step string, d done) {
	p.mu.Lock()
	if p.step == step && step != "" {
		p.give("", p.grace)
	}
	p.mu.Unlock()
	p.listener.done(step, d)
}
