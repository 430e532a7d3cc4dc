package look

import (
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
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

// Who watches a run is told the command that carries on with a run of its kind.
func TestCarriesOn(t *testing.T) {
	for _, c := range []struct {
		told  string   // by the operator; empty: there is none any more
		runs  string   // the step on the worker
		steps []string // that were seen
		want  string
	}{
		{"", "os/packages", nil, "`kgpu up`"},
		{"", "", nil, "`kgpu up`"},
		{"up inventory.yaml", "node/delete/w1", nil, "`kgpu up`"},
		{"reset w1", "node/drain/w1", nil, "`kgpu reset`"},
		{"upside-down", "os/packages", nil, "`kgpu up`"},
		{"", "addon/dashboard", nil, "`kgpu dashboard`"},
		{"", "dashboard/deploy", nil, "`kgpu dashboard`"}, // by a former version of kgpu
		{"dashboard", "", []string{"addon/dashboard-remove"}, "`kgpu dashboard --remove`"},
		{"user create joe", "", []string{"user/create"}, "`kgpu user create`"},
		{"", "user/delete", nil, "`kgpu user delete`"},
		{"doctor", "doctor/units", nil, "`kgpu doctor --fix`"},
		{"doctor", "doctor/watch", nil, "`kgpu doctor --install-watch`"},
		{"", "host/reset", []string{"node/drain/w1"}, "the `kgpu reset` or `kgpu remove-worker` that it was"},
		{"", "node/drain/w1", nil, "the command that began it"},
		{"", "node/delete/w1", []string{"kube/packages"}, "`kgpu up`"},
	} {
		cp, w1 := &facts.Host{}, &facts.Host{}
		if c.told != "" {
			cp.LockHolder = &facts.LockHolder{Command: c.told}
		}
		if c.runs != "" {
			w1.Run = &facts.Run{Step: c.runs}
		}
		s := &session.Session{
			Options: session.Options{Inventory: &inventory.Inventory{Hosts: []inventory.Host{{Name: "cp1", Role: inventory.ControlPlane}, {Name: "w1"}}}},
			Facts:   map[string]*facts.Host{"cp1": cp, "w1": w1},
		}
		if got := resumeHint(s, c.steps); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
