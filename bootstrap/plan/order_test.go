package plan

import (
	"strings"
	"testing"
)

// TestSamePlanEachTime holds that nothing in a plan is in the order of a map: what is shown to a person, and done, is the
// same for the same inventory and facts.
func TestSamePlanEachTime(t *testing.T) {
	inv := decode(t, threeHosts)
	seen := hostFacts(inv)
	for _, f := range seen {
		f.NVIDIA.Cards = cards("20b0", "2331")
	}
	plan := func() string {
		g := planUp(t, inv, seen)
		text := describe(g)
		for _, s := range g.Steps {
			text += strings.Join(inputLines(s.Input), "\n")
		}
		return text
	}
	first := plan()
	for range 30 {
		if again := plan(); again != first {
			t.Fatalf("a plan changed from\n%s\nto\n%s", first, again)
		}
	}
}
