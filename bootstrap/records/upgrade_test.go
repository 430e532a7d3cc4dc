package records

import (
	"slices"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/inventory"
)

// The newest run that upgraded nodes tells how long each was away; one that drained them for something else does not.
func TestUpgradeTimes(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	inv := &inventory.Inventory{Cluster: "lab", Path: "inventory.yaml"}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	run := func(id, step string, away time.Duration) {
		r, err := Begin(inv, history.Result{Run: id, Command: "up"}, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []event.Event{
			{Kind: event.StepStart, Host: "cp1", Step: "node/drain/w1", Time: now},
			{Kind: event.StepStart, Host: "w1", Step: step, Time: now.Add(time.Second)},
			{Kind: event.StepDone, Host: "cp1", Step: "node/uncordon/w1", Time: now.Add(away)},
			{Kind: event.StepDone, Host: "cp1", Step: "node/uncordon/w2", Time: now.Add(away)},
		} {
			e.Run = id
			r.Emit(e)
		}
		r.End("ok", 0)
	}
	run("20260101-000000-aaaaaa", "kube/upgrade", time.Hour)
	run("20260102-000000-bbbbbb", "kube/upgrade", time.Minute)
	run("20260103-000000-cccccc", "driver/install", time.Second)
	if got := UpgradeTimes(inv); !slices.Equal(got, []report.NodeTime{{Node: "w1", Took: time.Minute}}) {
		t.Errorf("it took %v", got)
	}
	if got := UpgradeTimes(&inventory.Inventory{Cluster: "lab", Path: "other.yaml"}); got != nil {
		t.Errorf("another inventory took %v", got)
	}
}
