package plan

import "testing"

// TestSamePlanEachTime holds that nothing in a plan is in the order of a map: what is shown to a person, and done, is the
// same for the same inventory and facts.
func TestSamePlanEachTime(t *testing.T) {
	inv := decode(t, threeHosts)
	seen := hostFacts(inv)
	for _, f := range seen {
		f.NVIDIA.Cards = cards("20b0", "2331")
	}
	first, err := Up(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		again, err := Up(inv, seen)
		if err != nil {
			t.Fatal(err)
		}
		if describe(again) != describe(first) {
			t.Fatalf("a plan changed from\n%s\nto\n%s", describe(first), describe(again))
		}
	}
}
