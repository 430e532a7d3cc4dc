package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
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

// unheld is a host on which a package is no longer held that kgpu held.
func unheld() *answering {
	return &answering{facts: bareFacts, doctor: "hold-lost=kubelet\n"}
}

// until calls then when the text has been written.
type until struct {
	said strings.Builder
	text string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.said.Write(p)
	if strings.Contains(u.said.String(), u.text) {
		u.then()
	}
	return n, err
}

// A question ends with the first Ctrl-C, whatever is typed, or not, after it.
func TestDoctorInterruptedAtAQuestion(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	silent, typing := io.Pipe()
	defer typing.Close()
	app := App("1.2.3", Group("all", Doctor()))
	out := &until{text: "Type yes to do it: ", then: func() { cancel(&reason.Error{ID: reason.Cancelled}) }}
	app.Writer, app.ErrWriter, app.Reader = out, io.Discard, silent
	status := Run(ctx, app, []string{"kgpu", "doctor", "--fix", "-i", inventoryOf(t, unheld())})
	if status != 130 || !strings.Contains(out.said.String(), "not confirmed, nothing of this was done") {
		t.Errorf("status %d:\n%s", status, out.said.String())
	}
}

// What was agreed to is done, shown and kept.
func TestDoctorFixIsRecorded(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	h := unheld()
	h.lines = map[string]string{"doctor/hold": fmt.Sprintf("L\tdoctor/hold\t%s\n", "kubelet set on hold.")}
	app := App("1.2.3", Group("all", Doctor()))
	var out bytes.Buffer
	app.Writer, app.ErrWriter, app.Reader = &out, &out, strings.NewReader("yes\n")
	Run(t.Context(), app, []string{"kgpu", "doctor", "--fix", "-i", inventoryOf(t, h)})
	if !strings.Contains(out.String(), "hold packages again") || strings.Contains(out.String(), "not confirmed") {
		t.Fatalf("it said\n%s", &out)
	}
	if log, status := do(t, "runs", "logs"); status != 0 || !strings.Contains(log, "kubelet set on hold.") {
		t.Errorf("status %d, the log:\n%s", status, log)
	}
	if page, status := do(t, "runs", "timeline", "last", "--file", "-"); status != 0 || strings.Contains(page, "no end told") {
		t.Errorf("the run has no end in its timeline (status %d)", status)
	}
}
