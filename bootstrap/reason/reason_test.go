package reason

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestTable holds the promise that a script can tell reasons apart by their exit status.
func TestTable(t *testing.T) {
	taken := map[int]ID{ExitOK: "ok", ExitInternal: "internal", ExitPending: "pending", ExitUsage: "usage", ExitSeveral: "several"}
	for _, r := range Table() {
		if other, ok := taken[r.Exit]; ok {
			t.Errorf("%s and %s both end with %d", r.ID, other, r.Exit)
		}
		taken[r.Exit] = r.ID
		if r.Exit < 10 || r.Exit > 130 && r.Exit < firstFree || r.Exit > 254 {
			t.Errorf("%s ends with %d: shells have their own meaning for it", r.ID, r.Exit)
		}
		if r.Advice == "" || strings.Contains(r.Advice, "\n") {
			t.Errorf("%s gives no advice, or more than a line", r.ID)
		}
		if !strings.HasSuffix(r.Meaning, ".") || len(r.Meaning) < 40 {
			t.Errorf("%s does not say in a sentence what it means: %q", r.ID, r.Meaning)
		}
	}
}

func TestExitStatus(t *testing.T) {
	swap := &Error{ID: HostSwapOn, Host: "w1"}
	port := &Error{ID: HostPortTaken, Host: "cp1"}
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, ExitOK},
		{"no reason", errors.New("x"), ExitInternal},
		{"a command line that is wrong", fmt.Errorf("up: %w", errors.Join(swap, Usagef("no host"))), ExitUsage},
		{"one", fmt.Errorf("up: %w", swap), 57},
		{"the same twice", errors.Join(swap, &Error{ID: HostSwapOn, Host: "w2"}), 57},
		{"different ones", errors.Join(swap, port), ExitSeveral},
		{"a reason that is not in the table", &Error{ID: "NO_SUCH"}, ExitInternal},
	} {
		if got := ExitStatus(c.err); got != c.want {
			t.Errorf("%s: exit status %d, want %d", c.name, got, c.want)
		}
	}
}

func TestError(t *testing.T) {
	cause := errors.New("E: no space")
	status := 100
	err := fmt.Errorf("up: %w", &Error{ID: StepFailed, Host: "w1", Step: "kube/packages", Doing: "install kubelet", Exit: &status, Err: cause})
	if want := "up: w1: kube/packages: install kubelet: E: no space (exit status 100) [STEP_FAILED]"; err.Error() != want {
		t.Errorf("printed %q, want %q", err, want)
	}
	if !errors.Is(err, cause) || !errors.Is(err, &Error{ID: StepFailed}) || errors.Is(err, &Error{ID: StepTimeout}) {
		t.Error("errors.Is does not see through")
	}
	var e *Error
	if !errors.As(err, &e) || e.AdviceLine() != Lookup(StepFailed).Advice {
		t.Error("errors.As or the advice is wrong")
	}
	if bare := (&Error{ID: StepFailed}).Error(); bare != "failed [STEP_FAILED]" {
		t.Errorf("without a cause it prints %q", bare)
	}
}
