package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Storm is a lab under faults.
type Storm struct {
	Lab     *Lab
	Out     io.Writer // hears what happens, a line each
	Upgrade Upgrade   // what the faults strike; zero: that a cluster comes up
	Steps   []Ref     // of an undisturbed run, each host's in order: Prepare finds them
	Tally   Tally

	bare      map[string]string // a snapshot of each host before anything was done
	reference State             // what the undisturbed run made
}

// say tells what happens.
func (s *Storm) say(format string, arguments ...any) {
	fmt.Fprintf(s.Out, "%s  %s\n", time.Now().Format("15:04:05.0"), fmt.Sprintf(format, arguments...))
}

// Prepare makes the cluster once without faults, keeps what came of it, and undoes it.
func (s *Storm) Prepare(ctx context.Context) error {
	s.Tally = newTally()
	s.bare = map[string]string{}
	for _, host := range s.Lab.Hosts {
		var err error
		if s.bare[host], err = s.Lab.snapshot(ctx, host, "bare"); err != nil {
			return err
		}
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.say("an undisturbed run, to compare with")
	begun := time.Now()
	if err := s.undisturbed(ctx); err != nil {
		return err
	}
	s.say("%d steps in %d places, in %s", len(s.Tally.Steps), len(s.Steps), time.Since(begun).Round(time.Second))
	var err error
	if s.reference, err = s.Lab.state(ctx); err != nil {
		return err
	}
	return s.reset(ctx)
}

// undisturbed is a run without faults, whose steps are noted. Hosts keep their last few batches only: they are read while
// it goes on.
func (s *Storm) undisturbed(ctx context.Context) error {
	var logs []*hostLog
	for _, host := range s.Lab.Hosts {
		log := newHostLog(s.Lab, host)
		if err := log.forget(); err != nil {
			return err
		}
		logs = append(logs, log)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Lab.kgpuTo(ctx, "up", "--yes", "--output", "json", s.Lab.inventory())
		ended <- err
	}()
	for over := false; !over; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			over = true
		case <-time.After(20 * time.Millisecond):
		}
		for _, log := range logs {
			if err := log.look(); err != nil {
				return err
			}
		}
	}
	for _, log := range logs {
		for _, step := range log.begun {
			s.Steps = append(s.Steps, Ref{log.host, step})
			if !slices.Contains(s.Tally.Steps, step) {
				s.Tally.Steps = append(s.Tally.Steps, step)
			}
		}
	}
	return nil
}

// reset undoes everything, and wants nothing to be left.
func (s *Storm) reset(ctx context.Context) error {
	s.say("reset")
	if _, err := s.Lab.kgpuTo(ctx, "reset", "--yes", "--inventory", s.Lab.inventory()); err != nil {
		return err
	}
	return s.Lab.each(func(host string) error {
		if _, err := s.Lab.verb(ctx, "diff", host, s.bare[host]); err != nil {
			return fmt.Errorf("reset left something on %s: %w", host, err)
		}
		return nil
	})
}

// extraRounds is how many rounds may follow those of a schedule, for what found no occasion in them.
const extraRounds = 3

// Run lets the rounds of a schedule go by, and further ones until kgpu was killed enough, and every step was struck by
// what the schedule wants it to be struck by.
func (s *Storm) Run(ctx context.Context, schedule Schedule, least Least) error {
	var left []Hit // found no occasion
	for count := 0; count < len(schedule.Rounds)+extraRounds; count++ {
		hits := s.hits(schedule, count, left, least)
		if count >= len(schedule.Rounds) && len(hits) == 0 {
			break
		}
		passed, err := s.round(ctx, count+1, hits)
		if err != nil {
			return err
		}
		left = append(slices.DeleteFunc(left, func(h Hit) bool {
			return slices.ContainsFunc(hits, func(tried Hit) bool { return tried.Number == h.Number })
		}), passed...)
	}
	return s.complete(schedule, least)
}

// hits are those of a round: the schedule's, and of those that are left from former rounds what must be.
func (s *Storm) hits(schedule Schedule, count int, left []Hit, least Least) []Hit {
	var planned []Hit
	if count < len(schedule.Rounds) {
		planned, least.Kills = schedule.Rounds[count], 0
	}
	var list []Hit
	for _, h := range s.Tally.missing(left, least) {
		list = append(list, h.again())
	}
	return append(list, planned...)
}

// complete wants the kills that there should be, and every fault that must strike a step to have struck it.
func (s *Storm) complete(schedule Schedule, least Least) error {
	var missing []string
	for _, h := range s.Tally.missing(slices.Concat(schedule.Rounds...), Least{Steps: least.Steps}) {
		missing = append(missing, h.Fault+" in "+h.Point.Step)
	}
	if got := s.Tally.Faults[Kill].Injected; got < least.Kills {
		missing = append(missing, fmt.Sprintf("%d kills, of at least %d", least.Kills-got, least.Kills))
	}
	if len(missing) > 0 {
		return fmt.Errorf("what should have struck, and found no occasion: %s", strings.Join(missing, ", "))
	}
	return nil
}

// round makes the cluster under these faults, judges it and undoes it. It returns the hits that found no occasion: their
// steps were done while no kgpu was there, or before the fault struck.
func (s *Storm) round(ctx context.Context, number int, hits []Hit) (passed []Hit, err error) {
	s.say("round %d: %d faults", number, len(hits))
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	watch, out := NewWatch(ctx, s.Lab.group), s.watchNodes(ctx)
	r := newRound(ctx, s, hits)
	err = r.run()
	r.faults.Wait()
	r.count()
	err = errors.Join(err, out())
	overlaps, blind := watch.Found()
	if len(overlaps) > 0 {
		err = errors.Join(err, errors.New("at the same time:\n"+strings.Join(overlaps, "\n")))
	}
	if err = errors.Join(err, blind, r.failed()); err == nil {
		err = s.judge(ctx, r.disturbed == 0)
	}
	if err == nil {
		err = s.proven(ctx)
	}
	if err == nil {
		err = s.reset(ctx)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.Tally.close(err == nil)
	if err != nil {
		err = fmt.Errorf("round %d: %w", number, err)
	}
	return r.passed, err
}

// settle bounds the wait for what kubelet and kube-proxy do after kgpu has ended.
const settle = 3 * time.Minute

// judge wants the cluster to be what an undisturbed run makes.
func (s *Storm) judge(ctx context.Context, strict bool) error {
	s.say("judging: nothing to do, all nodes ready, the same facts as those of an undisturbed run")
	// A host that lost power when kgpu had just come to its end boots still.
	for end := time.Now().Add(settle); ; time.Sleep(time.Second) {
		out, err := s.Lab.kgpuTo(ctx, "plan", s.Lab.inventory())
		if err == nil {
			break
		}
		if strict || ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("kgpu plan finds something to do: %w\n%s", err, tail(out, 20))
		}
	}
	// What kubelet and kube-proxy do for the last pods, nobody waits for.
	var differ []string
	said := time.Now()
	for end := time.Now().Add(settle); ; time.Sleep(time.Second) {
		state, err := s.Lab.state(ctx)
		if err != nil {
			return err
		}
		differ = s.reference.Differences(state, strict)
		if len(differ) == 0 {
			return nil
		}
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			s.say("judging: %d lines differ yet, the first is %s", len(differ), differ[0])
		}
		if time.Now().After(end) {
			return fmt.Errorf("not what an undisturbed run makes:\n%s", strings.Join(differ[:min(len(differ), 60)], "\n"))
		}
	}
}
