package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/status"
)

// What is asked for in a wrong way is said before any host is contacted, and a host that is off is an answer.
func TestStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	// A port on which nothing listens: 1 is reserved for tcpmux.
	text := "hosts: [{address: 127.0.0.1, role: control-plane}]\nssh: {port: 1, agent: false, key: k}\n"
	for name, content := range map[string]string{"good.yaml": text, "bad.yaml": "host: []\n"} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	for _, c := range []struct {
		args   []string
		want   int
		output string // begins so
	}{
		{[]string{"status"}, reason.ExitUsage, ""}, // no ./inventory.yaml
		{[]string{"status", "bad.yaml"}, 10, ""},
		{[]string{"status", "good.yaml", "other.yaml"}, reason.ExitUsage, ""},
		{[]string{"status", "good.yaml", "-o", "text"}, reason.ExitUsage, ""},
		{[]string{"status", "good.yaml", "--interval", "5s"}, reason.ExitUsage, ""},
		{[]string{"status", "good.yaml", "--watch", "--interval", "10ms"}, reason.ExitUsage, ""},
		{[]string{"status", "good.yaml"}, reason.ExitPending, "CLUSTER"},
		{[]string{"status", "good.yaml", "-o", "wide"}, reason.ExitPending, "CLUSTER"},
		{[]string{"status", "good.yaml", "--output", "yaml"}, reason.ExitPending, "---\nschema: 1\n"},
		{[]string{"status", "good.yaml", "--output", "json"}, reason.ExitPending, "{\n  \"schema\": 1,\n"},
	} {
		var out, errs bytes.Buffer
		app := App("v9", Group("Use it", Status()))
		app.Writer, app.ErrWriter = &out, &errs
		if got := Run(t.Context(), app, append([]string{"kgpu"}, c.args...)); got != c.want {
			t.Errorf("%q ended with %d, want %d: %s", c.args, got, c.want, &errs)
		}
		if !strings.HasPrefix(out.String(), c.output) || c.want == reason.ExitPending && errs.Len() > 0 {
			t.Errorf("%q printed %s and %s", c.args, &out, &errs)
		}
		if c.want == reason.ExitPending && !strings.Contains(out.String(), "SSH_") {
			t.Errorf("%q does not say why the host cannot be asked: %s", c.args, &out)
		}
		if strings.HasPrefix(c.output, "{") && !json.Valid(out.Bytes()) {
			t.Errorf("no JSON: %s", &out)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) != 2 {
		t.Errorf("files were written: %q", left)
	}
}

// A picture takes the place of the one before, and never more than the screen.
func TestScreen(t *testing.T) {
	out := &report.Sheet{As: report.Look{Width: 12}}
	s := &screen{out: out, height: 6}
	lines := func(n int) func(io.Writer, *status.Report) error {
		return func(w io.Writer, _ *status.Report) error {
			for i := range n {
				fmt.Fprintf(w, "%d of %d columns\n", i, 12)
			}
			return nil
		}
	}
	seen := &status.Report{Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for rows, want := range map[int][]string{
		1: {"0 of 12 col", ""},
		3: {"0 of 12 col", "1 of 12 col", "2 of 12 col", ""},
		9: {"0 of 12 col", "1 of 12 col", "… 7 more li", ""},
	} {
		out.Reset()
		must(t, s.draw(seen, 5*time.Second, lines(rows)))
		picture, whole := strings.CutPrefix(out.String(), ansi.CursorHomePosition)
		picture, rest := strings.CutSuffix(picture, ansi.EraseScreenBelow)
		got := strings.Split(picture, ansi.EraseLineRight+"\n")
		if !whole || !rest || len(got) != len(want)+2 || strings.Join(got[2:], "|") != strings.Join(want, "|") {
			t.Errorf("%d lines: %q", rows, out.String())
		}
	}
	out.Reset()
	for range 2 {
		must(t, s.append(seen, lines(1)))
	}
	if want := strings.Repeat("2026-11-21T12:00:00Z\n0 of 12 columns\n\n", 2); out.String() != want {
		t.Errorf("in a pipe: %q", out.String())
	}
}
