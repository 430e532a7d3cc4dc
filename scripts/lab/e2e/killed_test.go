package e2e

import (
	"cmp"
	"os"
	"strconv"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/chaos/storm"
	"kgpu.dev/kgpu/scripts/lab/place"
)

// TestKilled kills kgpu, in every step and at points that a seed chooses, and lets hosts go down where it hurts most. Each
// round must end with what an undisturbed run makes, without two package managers or two kubeadm at work on a host at the
// same time, and reset must leave nothing. At a power cut, a host loses what nobody synced. KGPU_SEED chooses another seed;
// -short is one round, which kills in a third of the steps, and another where it did not; `make chaos` is the long one.
func TestKilled(t *testing.T) {
	least, rounds := storm.Least{Kills: 30}, 3
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("KGPU_SEED"), "4"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p, err := place.New(labs.take(t))
	if err != nil {
		t.Fatal(err)
	}
	l := &storm.Lab{Place: p, Program: labProgram, Kgpu: kgpuProgram, Hosts: []string{"cp1", "w1"}, Disks: true}
	t.Cleanup(func() {
		if err := l.Destroy(); err != nil {
			t.Error(err)
		}
	})
	if err := storm.Open(t.Context(), l, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Logf("what two runs may differ in:\n%s", storm.AllowList)
	s := &storm.Storm{Lab: l, Out: t.Output()}
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	schedule := storm.NewSchedule(seed, s.Steps, storm.Want{
		Hits: 45, Faults: map[string]int{storm.Kill: 1},
		Wishes: []storm.Wish{
			{Step: "runtime/containerd", Faults: []string{storm.Power, storm.Reboot}},
			{Step: "kube/packages", Faults: []string{storm.Power, storm.Reboot}},
			{Step: "cluster/init", Faults: []string{storm.Power, storm.Reboot}},
			{Step: "cluster/join", Faults: []string{storm.Power, storm.Reboot}},
		},
	})
	if testing.Short() {
		least, rounds = storm.Least{Kills: 10, Steps: (len(s.Tally.Steps) + 2) / 3}, 1
	}
	schedule.Rounds = schedule.Rounds[:rounds]
	if err := schedule.Print(t.Output()); err != nil {
		t.Fatal(err)
	}
	failure := s.Run(t.Context(), schedule, least)
	if err := s.Tally.Print(t.Output()); err != nil {
		t.Error(err)
	}
	if failure != nil {
		t.Errorf("KGPU_SEED=%d: %v", seed, failure)
	}
	if s.Tally.Attached == 0 {
		t.Error("no run attached to one that was killed")
	}
	if t.Failed() {
		if log, err := os.ReadFile(l.Record()); err == nil {
			t.Logf("the end of what kgpu told:\n%s", log[max(0, len(log)-20000):])
		}
	}
}
