// Package run is the engine: it carries out a graph of steps over hosts, each host as far as it can get, and tells what
// happens. It knows hosts, batches and scripts, and nothing of what the scripts are for.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
)

// Host is a connected host; *remote.Host is one.
type Host interface {
	ID() string
	Run(ctx context.Context, c remote.Command) error
	Reconnect(ctx context.Context) error
}

// The defaults of an Engine.
const (
	DefaultLimit = 30
	DefaultDir   = "/var/lib/kgpu"
)

// tries is how often a step that fails for a transient reason is tried.
const tries = 3

// Engine carries out graphs. The zero value of the fields from Limit on means their default.
type Engine struct {
	Run      string                                // ID of the run: of [0-9a-z-], no other run's
	By       string                                // who runs it, as user@machine: told to others who want the host
	Hosts    map[string]Host                       // by ID
	Events   event.Sink                            // hears everything; never a secret
	Budget   *event.Budget                         // of what the hosts may tell, across the engines of a run; nil: of each batch
	Warnings *Warnings                             // of the steps, across the engines of a run, for who tells them at its end; nil: nobody
	Script   func(name string) ([]byte, error)     // the script of a step
	Lib      []byte                                // the library the scripts source
	Heard    func(host, name string, value []byte) // the outputs of batches that others began, secrets among them; nil: nobody

	Limit            int                // batches that run at the same time
	Timeouts         inventory.Timeouts // how long is waited each time for what passes by itself
	Dir              string             // kgpu's directory on every host
	Heartbeat        time.Duration      // how often a command that lasts as long as kgpu does gets a line from here
	HeartbeatTimeout time.Duration      // how long such a command goes on when nothing comes any more
	Fence            int64              // the highest number of a lock on a cluster that a host has told of
	Forgets          bool               // the run makes the hosts forget everything of kgpu, locks too

	clock func() time.Duration        // since this machine began, with what it slept; nil: the system's
	pause func(try int) time.Duration // before the next try; nil: remote.Backoff
}

// batches counts the names given so far, across engines: several may serve one run, and a host knows a batch by its name.
var batches atomic.Int64

// Outcome is what became of a step.
type Outcome string

// The outcomes of a step.
const (
	Pending Outcome = "pending" // not begun: the run was cancelled before
	Running Outcome = "running" // handed to the host, where it goes on: the run was cancelled meanwhile
	Done    Outcome = "done"    // ended well
	Failed  Outcome = "failed"  // ended badly
	Skipped Outcome = "skipped" // a step it needs failed, or its host is lost
)

// StepResult is what became of one step.
type StepResult struct {
	graph.Ref
	Outcome     Outcome
	Tries       int           // how often it was begun
	Interrupted bool          // the host went down during a try, and the step was begun again
	Took        time.Duration // of the last try, on the host's clock
}

// Result is what became of a graph.
type Result struct {
	Steps   []StepResult  // in the graph's order
	Outputs graph.Outputs // secret
}

var (
	validRun  = regexp.MustCompile(`^[0-9a-z][0-9a-z-]*$`)
	validStep = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z./_-]*$`)
)

// Execute carries out g. The result is never nil; the error joins one *reason.Error for each step that failed, or, when
// ctx ended, for each step that was cut short: what runs on a host then goes on there, and nothing new is started.
func (e *Engine) Execute(ctx context.Context, g *graph.Graph) (*Result, error) {
	if err := e.check(g); err != nil {
		return &Result{Outputs: graph.Outputs{}}, err
	}
	e.announce(g)
	s := newSchedule(e, g)
	s.lock = lockOf(ctx)
	s.lock.tell(func() { s.change(func() {}) })
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()

	var pipelines sync.WaitGroup
	for id := range s.hosts {
		pipelines.Go(func() { e.pipeline(ctx, s, e.Hosts[id]) })
	}
	pipelines.Wait()
	return s.result(ctx.Err())
}

// announce tells what is going to be done, for those who draw it.
func (e *Engine) announce(g *graph.Graph) {
	if g.Empty() {
		return
	}
	here := map[graph.Ref]bool{}
	for _, step := range g.Steps {
		here[step.Ref] = true
	}
	var list []event.Planned
	for _, step := range g.Steps {
		p := event.Planned{Host: step.Host, Step: step.ID, Title: step.Title, Reason: step.Reason}
		for _, need := range step.Needs {
			if here[need] {
				p.Needs = append(p.Needs, event.Ref{Host: need.Host, Step: need.ID})
			}
		}
		list = append(list, p)
	}
	e.emit(event.Event{Kind: event.Plan, Plan: list})
}

// check finds what no host needs to be asked for.
func (e *Engine) check(g *graph.Graph) error {
	if !validRun.MatchString(e.Run) {
		return fmt.Errorf("run ID %q: only 0-9, a-z and - are allowed", e.Run)
	}
	if err := g.Validate(); err != nil {
		return err
	}
	var problems []error
	for _, step := range g.Steps {
		if e.Hosts[step.Host] == nil {
			problems = append(problems, fmt.Errorf("step %s: no connection to this host", step.Ref))
		}
		if !validStep.MatchString(step.ID) {
			problems = append(problems, fmt.Errorf("step %s: the ID has other characters than letters, digits, dots, slashes, underscores and dashes", step.Ref))
		}
	}
	return errors.Join(problems...)
}

// pipeline runs the batches of one host, one after the other, until nothing is left for it.
func (e *Engine) pipeline(ctx context.Context, s *schedule, h Host) {
	for {
		tasks := s.next(h.ID())
		if tasks == nil {
			return
		}
		e.runTasks(ctx, s, h, tasks)
		s.release()
	}
}

// runTasks runs tasks as one batch and tells the schedule what became of them.
func (e *Engine) runTasks(ctx context.Context, s *schedule, h Host, tasks []*task) {
	l := newTaskListener(s, tasks)
	known := s.knownOutputs()
	payloads := make([]payload, len(tasks))
	for i, t := range tasks {
		var err error
		if payloads[i], err = e.payloadOf(t.step, known); err != nil {
			s.failed(t, l.atStep(t, err), stepOnly)
			s.putBack(tasks)
			return
		}
	}
	name := fmt.Sprintf("%s-%d", e.Run, batches.Add(1))
	s.change(func() {
		for _, t := range tasks {
			t.batch = name
		}
	})
	p := e.withDeadline(l, h.ID(), tasks)
	b := &batch{engine: e, host: h, name: name, reader: reader{listener: p, host: h.ID(), budget: e.Budget}, time: p}
	end, err := b.run(ctx, e.bundle(name, s.lock.fence(), payloads))
	l.batchEnded(ctx, tasks, end, err)
}

func (e *Engine) emit(ev event.Event) {
	ev.Time, ev.Run = time.Now(), e.Run
	if e.Events != nil {
		e.Events.Emit(ev)
	}
}

func (e *Engine) limit() int { return cmp.Or(e.Limit, DefaultLimit) }

func (e *Engine) dir() string { return cmp.Or(e.Dir, DefaultDir) }

// timeouts are those of the engine, with defaults in the place of zeros.
func (e *Engine) timeouts() inventory.Timeouts {
	t, other := e.Timeouts, inventory.DefaultTimeouts()
	return inventory.Timeouts{
		Link: cmp.Or(t.Link, other.Link), Reboot: cmp.Or(t.Reboot, other.Reboot),
		Lock: cmp.Or(t.Lock, other.Lock), Transient: cmp.Or(t.Transient, other.Transient),
	}
}

// before is how long to wait before another try, the first being number 1.
func (e *Engine) before(try int) time.Duration {
	if e.pause != nil {
		return e.pause(try)
	}
	return remote.Backoff(try, 2*time.Second, time.Minute)
}
