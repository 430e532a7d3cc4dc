package command

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// examined runs kgpu doctor on a host where nothing listens.
func examined(t *testing.T, args ...string) (string, int) {
	t.Helper()
	app := App("1.2.3", Group("all", Doctor()))
	var out, errs bytes.Buffer
	app.Writer, app.ErrWriter, app.Reader = &out, &errs, strings.NewReader("")
	status := Run(t.Context(), app, append([]string{"kgpu", "doctor"}, args...))
	return out.String() + errs.String(), status
}

// Who asks for repairs hears what becomes of it, and a run that may change hosts leaves a folder; a mere look leaves none.
func TestDoctorFixesNothing(t *testing.T) {
	state := place(t)
	if out, status := examined(t); status != 1 || !strings.Contains(out, "SSH_UNREACHABLE") {
		t.Fatalf("status %d:\n%s", status, out)
	}
	if entries, _ := os.ReadDir(state); len(entries) > 0 {
		t.Errorf("a look left %v", entries)
	}
	if out, status := examined(t, "--fix"); status != 1 || !strings.Contains(out, "Nothing of this is repaired by --fix") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if out, status := examined(t, "--install-watch"); status != 20 {
		t.Errorf("status %d:\n%s", status, out)
	}
	runs, status := do(t, "runs", "-o", "json")
	if status != 0 || strings.Count(runs, `"command": "doctor"`) != 2 {
		t.Errorf("status %d, the runs:\n%s", status, runs)
	}
}

// Flags that contradict each other, and words that mean nothing, change nothing.
func TestDoctorUsage(t *testing.T) {
	place(t)
	for _, args := range []string{"--fix --install-watch", "--fix -o json", "--install-watch -o json", "-o yaml", "--ignore NONE", "--max-unavailable 0", "--fix nobody"} {
		if out, status := examined(t, strings.Fields(args)...); status != 3 {
			t.Errorf("%s: status %d:\n%s", args, status, out)
		}
	}
}
