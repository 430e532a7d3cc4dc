package look

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// Attach shows what the run does that holds the cluster, or what a former one left at work, until its end. It changes
// nothing. It returns how that ended, in words.
func Attach(ctx context.Context, o session.Options) (string, error) {
	seen := &tally{Sink: o.Events, done: map[event.Ref]bool{}, failed: map[event.Ref]bool{}}
	o.Events = seen
	s := session.New(o)
	defer s.Close()
	if err := s.Meet(o.Inventory.Hosts, func(h inventory.Host) error { return meetToWatch(ctx, s, h) }); err != nil {
		return "", err
	}
	ended, abandoned := "the run has ended", false
	left := func() {
		abandoned = true
		s.Tell(event.Event{
			Kind: event.Warning,
			Text: "nobody steers what runs on the hosts, the kgpu that began it is gone; when it has ended, " + resumeHint(s, seen.begun()) + " carries on",
		})
	}
	other := s.DescribeHolder()
	switch {
	case other != "":
		s.Tell(event.Event{Kind: event.Wait, Text: "for the end of a run: " + other})
	case s.DescribeWork() != "":
		left()
	default:
		return "nothing is at work on the cluster", nil
	}
	err := s.Watch(ctx, left)
	if ctx.Err() != nil {
		return "left; the run goes on", &reason.Error{ID: reason.Cancelled, Doing: "watching", Err: err,
			Detail: "left; what is at work on the hosts goes on", Advice: "`kgpu attach` shows it again"}
	}
	if abandoned {
		ended = "what ran has ended, and " + resumeHint(s, seen.begun()) + " carries on"
	}
	return ended + seen.words(), err
}

// tally counts the steps that events tell of.
type tally struct {
	event.Sink

	mu           sync.Mutex
	done, failed map[event.Ref]bool
	steps        []string // IDs of those that began
}

// Emit counts e and passes it on.
func (t *tally) Emit(e event.Event) {
	step := e.Ref()
	t.mu.Lock()
	switch {
	case e.Step == "":
	case e.Kind == event.StepStart:
		t.steps = append(t.steps, e.Step)
	case e.Kind == event.StepDone:
		t.done[step] = true
		delete(t.failed, step)
	case e.Kind == event.Error:
		t.failed[step] = true
	}
	t.mu.Unlock()
	t.Sink.Emit(e)
}

// begun are the IDs of the steps that began.
func (t *tally) begun() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.steps)
}

// words are what was counted, for the end of a sentence; empty: nothing was.
func (t *tally) words() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.done)+len(t.failed) == 0 {
		return ""
	}
	hosts := map[string]bool{}
	for step := range t.done {
		hosts[step.Host] = true
	}
	failed := "none failed"
	if n := len(t.failed); n > 0 {
		failed = fmt.Sprintf("%d failed", n)
	}
	return fmt.Sprintf(". Seen from here: %s done on %s, %s", plural.Of(len(t.done), "step"), plural.Of(len(hosts), "host"), failed)
}

// meetToWatch connects to a host. A worker that cannot be reached, because it reboots perhaps, is not watched.
func meetToWatch(ctx context.Context, s *session.Session, h inventory.Host) error {
	err := s.ConnectAndGather(ctx, h)
	if err == nil || ctx.Err() != nil || h.IsControlPlane() {
		return err
	}
	s.Disconnect(h.ID())
	s.Tell(event.Event{Host: h.ID(), Kind: event.Warning, Text: "this host is not watched: " + err.Error()})
	return nil
}

// resumeHint names the command that carries on with a run that is watched, of which these steps were seen: the one that its
// operator told, where that says enough, or the one that has such steps.
func resumeHint(s *session.Session, steps []string) string {
	if _, f := s.LockedPlane(); f != nil {
		for _, command := range []string{"up", "add-worker", "add-control-plane", "remove-worker", "remove-control-plane", "reset", "smoke"} {
			if word, _, _ := strings.Cut(f.LockHolder.Command, " "); word == command {
				return "`kgpu " + command + "`"
			}
		}
	}
	for _, f := range s.Facts {
		if f.Run != nil {
			steps = append(steps, f.Run.Step)
		}
	}
	for _, id := range steps {
		if kind := plan.Kinds.Of(id); kind != nil && kind.Resumes != "" {
			return kind.Resumes
		}
	}
	// Nodes leave with several commands; the steps of up are all others.
	if len(steps) > 0 && !slices.ContainsFunc(steps, func(id string) bool { return !strings.HasPrefix(id, "node/") }) {
		return "the command that began it"
	}
	return "`kgpu up`"
}
