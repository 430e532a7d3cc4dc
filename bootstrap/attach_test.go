package bootstrap

import (
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
)

// Who watched is told how much was done and what failed in the end; a step that was done after all did not fail.
func TestTally(t *testing.T) {
	heard := &event.Recorder{}
	seen := &tally{Sink: heard, done: map[event.Ref]bool{}, failed: map[event.Ref]bool{}}
	if got := seen.words(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for _, e := range []event.Event{
		{Kind: event.Error, Text: "of no step"},
		{Host: "w1", Step: "a", Kind: event.StepStart}, {Host: "w1", Step: "a", Kind: event.Error}, {Host: "w1", Step: "a", Kind: event.StepDone},
		{Host: "w2", Step: "a", Kind: event.StepDone}, {Host: "w2", Step: "b", Kind: event.StepDone}, {Host: "w3", Step: "a", Kind: event.Error},
	} {
		seen.Emit(e)
	}
	if got, want := seen.words(), ". Seen from here: 3 steps done on 2 hosts, 1 failed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := len(heard.Events()); n != 7 {
		t.Errorf("%d of 7 events were passed on", n)
	}
}
