package storm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// round is a cluster coming up under faults.
type round struct {
	*Storm
	ctx     context.Context
	pending []Hit
	passed  []Hit
	logs    map[string]*hostLog // by host
	before  map[Ref]string      // the step before each, on its host

	session   *session
	disturbed int // faults that struck something else than kgpu
	refused   int // runs that ended with an error

	faults sync.WaitGroup
	mu     sync.Mutex
	struck map[string]bool // hosts that a fault is at work on
	blows  []blow
	errs   error // of the faults themselves
}

// blow is what a fault of a host has struck.
type blow struct {
	Hit
	step string // that was at work there; empty: none
}

func newRound(ctx context.Context, s *Storm, hits []Hit) *round {
	r := &round{Storm: s, ctx: ctx, pending: slices.Clone(hits), logs: map[string]*hostLog{}, struck: map[string]bool{}}
	// A host that goes down begins its step again. When kgpu is back that was killed, a quick step is over.
	slices.SortStableFunc(r.pending, func(a, b Hit) int { return rank(a) - rank(b) })
	r.before = chains(s.Steps)
	for _, host := range s.Lab.Hosts {
		r.logs[host] = newHostLog(s.Lab, host)
	}
	return r
}

// rank is which of two hits comes first where both can.
func rank(h Hit) int {
	if h.Must && h.Fault != Kill {
		return 0
	}
	return 1
}

// chains says of each step which one comes before it on its host.
func chains(steps []Ref) map[Ref]string {
	before, last := map[Ref]string{}, map[string]string{}
	for _, ref := range steps {
		before[ref], last[ref.Host] = last[ref.Host], ref.Step
	}
	return before
}

// failed says what faults could not be done.
func (r *round) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}

// run starts kgpu up again and again, until a run comes to its end.
func (r *round) run() error {
	for _, log := range r.logs {
		if err := log.forget(); err != nil {
			return err
		}
	}
	for attempt := 1; r.ctx.Err() == nil; attempt++ {
		r.faults.Wait() // a host that is off cannot be reached, which ends kgpu at once
		if err := errors.Join(r.failed(), r.look()); err != nil {
			return err
		}
		var err error
		if r.session, err = r.Lab.startUp(r.ctx); err != nil {
			return err
		}
		if r.Upgrade != (Upgrade{}) {
			r.session.explained = slices.Concat(r.session.explained, ofUpgrades)
		}
		killed, err := r.follow()
		if err != nil {
			r.session.kill()
			return errors.Join(err, r.session.defect(true))
		}
		if err := r.session.defect(killed); err != nil {
			return err
		}
		r.Tally.Attached += r.session.attachments()
		if killed {
			continue
		}
		if r.session.exit() == 0 {
			r.say("kgpu up came to its end in run %d; %d faults found no occasion", attempt, len(r.pending))
			r.passed = append(r.passed, r.pending...)
			return nil
		}
		why := r.session.why()
		if r.refused++; r.refused > r.disturbed {
			return fmt.Errorf("kgpu up failed, and nothing but kgpu was disturbed: %s", why)
		}
		r.say("kgpu up ended: %s", why)
		r.Tally.refuse()
		if r.session.result.Reason == busy {
			r.pause(cmp.Or(r.Lab.silence, lockSilence))
		}
	}
	return context.Cause(r.ctx)
}

// pause waits, as somebody does who was told that another run is at work.
func (r *round) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
	}
}

// look reads what the hosts' batches told.
func (r *round) look() error {
	var errs []error
	for _, log := range r.logs {
		errs = append(errs, log.look())
	}
	return errors.Join(errs...)
}

// silence is how long a storm says nothing before it tells what it waits for.
const silence = 15 * time.Second

// follow lets a run go on until it is killed, or over.
func (r *round) follow() (killed bool, err error) {
	told := time.Now()
	ticker := time.NewTicker(4 * time.Millisecond)
	defer ticker.Stop()
	for !r.session.isOver() {
		before := r.done()
		if err := r.look(); err != nil {
			return false, err
		}
		if i := slices.IndexFunc(r.pending, func(h Hit) bool { return r.comesBy(h.Point, before) && !r.heldBack(h) }); i >= 0 {
			hit := r.pending[i]
			told = time.Now()
			if hit.Fault != Kill {
				r.pending = slices.Delete(r.pending, i, i+1)
				r.strike(hit)
			} else if r.kill(hit) {
				r.pending = slices.Delete(r.pending, i, i+1)
				return true, nil
			}
		}
		if time.Since(told) > silence {
			told = time.Now()
			r.say("waiting for kgpu up: %s", r.session.last())
		}
		<-ticker.C
	}
	return false, nil
}

// done are the steps that are done.
func (r *round) done() map[Ref]bool {
	all := map[Ref]bool{}
	for host, log := range r.logs {
		for step := range log.done {
			all[Ref{host, step}] = true
		}
	}
	return all
}

// listening says whether the present run of kgpu follows what the host does.
func (r *round) listening(host string) bool {
	return r.session.isListening(r.Lab.address[host], r.logs[host].batch)
}

// comesBy says whether the run is at the point now; before are the steps that were done a moment ago. A run that has not
// yet found what is at work on a host is at no point there.
func (r *round) comesBy(p Point, before map[Ref]bool) bool {
	if p.Phase == Connect {
		return r.logs[p.Host].running != "" && r.session.isConnected(r.Lab.address[p.Host])
	}
	if !r.listening(p.Host) {
		return false
	}
	log := r.logs[p.Host]
	end, done := log.done[p.Step]
	running, justDone := log.running == p.Step, done && !before[p.Ref]
	switch p.Phase {
	case Begin:
		return running
	case During:
		return running && time.Since(log.since) >= p.After || justDone
	case End:
		return justDone
	default:
		return done && time.Since(end) >= p.After
	}
}

// heldBack says whether a hit has to wait. A fault waits for the one that is at work on its host: nothing can be done to a
// host that is off. One that must hit its step is not content with a step that is just done, as others are: it would strike
// the next one. A kill waits for one that must hit the begin of the very next step of a host: kgpu would not be back in time.
func (r *round) heldBack(h Hit) bool {
	if h.Fault != Kill {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.struck[h.Point.Host] || h.Must && r.logs[h.Point.Host].running != h.Point.Step
	}
	return !h.Must && slices.ContainsFunc(r.pending, func(must Hit) bool {
		ref := must.Point.Ref
		_, done := r.logs[ref.Host].done[ref.Step]
		before := r.before[ref]
		return must.Must && must.Point.Phase == Begin && !done && before != "" && r.logs[ref.Host].running == before
	})
}

// strike begins a fault of a host, which goes on beside kgpu.
func (r *round) strike(h Hit) {
	r.say("%s, while %s", h, r.atWork())
	f, host := faults[h.Fault], h.Point.Host
	log := r.logs[host]
	went, dead := log.outage(), log.batch == log.dead
	r.disturbed++
	r.Tally.inject(h.Fault)
	if f.down {
		log.down()
	}
	r.mu.Lock()
	r.struck[host] = true
	r.mu.Unlock()
	r.faults.Go(func() {
		err := f.strike(r.ctx, r.Lab, host, h.For)
		// Until the power is gone a quick step comes to its end, and only what did not was struck. An orderly reboot lets such
		// a step end: it was struck when the host was told to reboot.
		step := went.step
		if h.Fault == Power && !dead {
			step = log.cutOff(went)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.struck[host] = false
		r.blows = append(r.blows, blow{h, step})
		if err != nil && r.ctx.Err() == nil {
			r.errs = errors.Join(r.errs, fmt.Errorf("%s: %w", h, err))
		}
		r.say("%s: over", h)
	})
}

// count says to the tally what the hosts' faults, which are over, have struck. What must be struck, and was not, comes again.
func (r *round) count() {
	for _, b := range r.blows {
		if b.step != "" {
			r.Tally.hit(b.Fault, Ref{b.Point.Host, b.step})
		}
	}
	for _, b := range r.blows {
		if b.Must && !r.Tally.Struck(b.Fault, b.Point.Step) {
			r.say("%s: the step was over before, it comes again", b.Hit)
			r.passed = append(r.passed, b.Hit)
		}
	}
}

// kill is kill -9 of kgpu, and says whether that is what ended it.
func (r *round) kill(h Hit) bool {
	r.session.kill()
	if !r.session.wasKilled() {
		return false
	}
	r.Tally.inject(Kill)
	_ = r.look() // it could be read a moment ago
	r.say("%s, while %s", h, r.atWork())
	// What is at work now was at work when kgpu was killed: only that counts as hit, and only where kgpu knew of it.
	for host, log := range r.logs {
		if log.running != "" && r.listening(host) {
			r.Tally.hit(Kill, Ref{host, log.running})
		}
	}
	if h.Must && !r.Tally.Struck(Kill, h.Point.Step) {
		r.passed = append(r.passed, h)
	}
	return true
}

// atWork says what the hosts do.
func (r *round) atWork() string {
	var list []string
	for _, host := range slices.Sorted(maps.Keys(r.logs)) {
		if step := r.logs[host].running; step != "" {
			list = append(list, host+" "+step)
		}
	}
	if len(list) == 0 {
		return "nothing is at work"
	}
	return strings.Join(list, ", ")
}
