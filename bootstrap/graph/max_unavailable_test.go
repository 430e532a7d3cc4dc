package graph

import (
	"slices"
	"testing"
)

// TestRebootsOfNewHostsAreLimited: so many hosts that are no nodes reboot at the same time, and none waits for
// another's success.
func TestRebootsOfNewHostsAreLimited(t *testing.T) {
	g := &Graph{}
	for _, host := range []string{"a", "b", "c"} {
		g.Steps = append(g.Steps, &Step{Ref: Ref{Host: host, ID: "driver/reboot"}, Mutex: RebootMutex})
	}
	g.LimitUnavailable(2)
	var words []string
	for _, s := range g.Steps {
		words = append(words, s.Mutex)
		if len(s.Needs) > 0 {
			t.Errorf("%s waits for %v", s.Ref, s.Needs)
		}
	}
	if want := []string{"reboot", "reboot 1", "reboot"}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
}
