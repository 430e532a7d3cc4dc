package main

import (
	"fmt"
	"slices"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/chaos/storm"
)

// TestEveryStepGoesDown: the schedule has a power cut and a reboot that must strike in each step, however few faults are asked for.
func TestEveryStepGoesDown(t *testing.T) {
	steps := []storm.Ref{{Host: "cp1", Step: "os/packages"}, {Host: "w1", Step: "os/packages"}, {Host: "cp1", Step: "cluster/init"}}
	var must []string
	for _, round := range storm.NewSchedule(7, steps, storm.Want{Wishes: everyStepGoesDown(steps)}).Rounds {
		for _, h := range round {
			if h.Must {
				must = append(must, fmt.Sprint(h.Fault, " in ", h.Point.Step))
			}
		}
	}
	slices.Sort(must)
	want := []string{
		"kill in cluster/init", "kill in os/packages", "power in cluster/init", "power in os/packages", "reboot in cluster/init", "reboot in os/packages",
	}
	if !slices.Equal(must, want) {
		t.Errorf("got %q, want %q", must, want)
	}
}
