package plan

import (
	"slices"
	"testing"

	"kgpu.dev/kgpu/scripts"
)

// TestKinds holds that there are the scripts that the kinds of steps name, that no kind is there twice, and that all of a kind is
// said.
func TestKinds(t *testing.T) {
	ids := Kinds.IDs()
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("a kind is there twice: %q", ids)
	}
	for _, k := range Kinds {
		if k.Title == "" || k.Timeout <= 0 {
			t.Errorf("%+v", k)
		}
		if _, err := scripts.Step(k.Script); err != nil {
			t.Errorf("%s: %v", k.ID, err)
		}
	}
}
