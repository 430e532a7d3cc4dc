package graph

import (
	"strings"
	"testing"
)

// TestSelectKeepsTheDrainOfItsSteps: a drain is kept with the steps that it is for, and excluded without them; the node
// is uncordoned afterwards.
func TestSelectKeepsTheDrainOfItsSteps(t *testing.T) {
	steps := func(ids ...string) *Graph {
		g := &Graph{}
		for _, id := range ids {
			g.Steps = append(g.Steps, &Step{Ref: Ref{ID: id}})
		}
		return g
	}
	drained := steps("os/time", "node/drain/w1", "driver/install", "gpu/ready", "node/uncordon/w1")
	drained.DrainWindows = []DrainWindow{{Drain: Ref{ID: "node/drain/w1"}, Uncordon: Ref{ID: "node/uncordon/w1"}, For: []Ref{{ID: "driver/install"}}}}
	before := steps("os/time", "driver/install", "node/uncordon/w1") // by a run that was interrupted
	before.DrainWindows = []DrainWindow{{Uncordon: Ref{ID: "node/uncordon/w1"}, Drained: true, For: []Ref{{ID: "driver/install"}}}}
	over := steps("os/time", "node/uncordon/w1") // and had nothing else left to do
	over.DrainWindows = []DrainWindow{{Uncordon: Ref{ID: "node/uncordon/w1"}, Drained: true}}
	for _, c := range []struct {
		graph      *Graph
		only, skip string
		want       string
	}{
		{drained, "driver/*", "", "node/drain/w1 driver/install node/uncordon/w1"},
		{drained, "os/*", "", "os/time"},
		{drained, "node/drain", "", "node/drain/w1"},
		{drained, "", "driver/*", "os/time gpu/ready"},
		{drained, "", "os/*", "node/drain/w1 driver/install gpu/ready node/uncordon/w1"},
		{drained, "", "node/*", "os/time driver/install gpu/ready"},
		{drained, "driver/*", "node/uncordon", "node/drain/w1 driver/install"},
		{before, "driver/*", "", "driver/install node/uncordon/w1"},
		{before, "os/*", "", "os/time"},
		{before, "node/*", "", "node/uncordon/w1"},
		{before, "", "driver/*", "os/time"},
		{before, "", "os/*", "driver/install node/uncordon/w1"},
		{over, "os/*", "", "os/time node/uncordon/w1"},
		{over, "", "node/*", "os/time"},
	} {
		g, err := c.graph.Select(strings.Fields(c.only), strings.Fields(c.skip))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range g.Steps {
			got = append(got, s.ID)
		}
		if strings.Join(got, " ") != c.want || len(g.Skipped)+len(g.Steps) != len(c.graph.Steps) {
			t.Errorf("only %q, without %q: %q, want %s", c.only, c.skip, got, c.want)
		}
	}
}
