package storm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHostLogFollowsBatches(t *testing.T) {
	h := newHostLog(&Lab{}, "w1")
	dir := t.TempDir()
	h.runs = func() string { return dir }
	write := func(batch, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, batch), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, batch, "events"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.look(); err != nil {
			t.Fatal(err)
		}
	}
	is := func(batch, running string, done ...string) {
		t.Helper()
		var have []string
		for step := range h.done {
			have = append(have, step)
		}
		slices.Sort(have)
		if h.batch != batch || h.running != running || !slices.Equal(have, done) {
			t.Errorf("batch %q, running %q, done %v; want %q, %q, %v", h.batch, h.running, have, batch, running, done)
		}
	}
	if err := h.look(); err != nil {
		t.Fatal(err)
	}
	write("1-1", "B\tos/packages\t1700000000000\nL\tos/packages\tB\tnot an event\nD\tos/packa")
	is("1-1", "os/packages")
	write("1-1", "ges\t0\t12\t\t\nB\tos/modules\t17\n")
	is("1-1", "os/modules", "os/packages")
	first := h.outage()
	h.down()
	is("1-1", "", "os/packages")
	write("1-1", "D\tos/modules\t0\t12\t\t\nB\tos/sysctl\t17\nL\tos/sysctl\tmore\n") // until it is really down
	is("1-1", "", "os/modules", "os/packages")
	if at := h.cutOff(first); at != "os/sysctl" {
		t.Errorf("it went down during %q", at)
	}
	if at := h.cutOff(outage{batch: "no-such"}); at != "" {
		t.Errorf("a batch that does not exist was at %s", at)
	}
	write("2-1", "B\tos/modules\t18\n")
	is("2-1", "os/modules", "os/packages")
	write("2-1", "D\tos/modules\t1\t12\tSTEP_FAILED\tno\nE\t1\n")
	is("2-1", "", "os/packages")
	last := h.outage()
	if at := h.cutOff(last); at != "" {
		t.Errorf("a batch that ended was at %s", at)
	}
	// Disks lose what nobody synced.
	if err := os.Truncate(filepath.Join(h.runs(), "1-1", "events"), 10); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(h.runs(), "2-1")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		went outage
		want string
	}{{first, "os/modules"}, {outage{"2-1", last.told, "os/modules"}, "os/modules"}, {last, ""}} {
		if at := h.cutOff(c.went); at != c.want {
			t.Errorf("of what was lost: it went down during %q, want %q", at, c.want)
		}
	}
	if !slices.Equal(h.begun, []string{"os/packages", "os/modules", "os/sysctl"}) {
		t.Errorf("begun: %v", h.begun)
	}
}

// TestWhatWasDoneBeforeAStorm: the steps that made what the storm strikes are no occasion for a fault.
func TestWhatWasDoneBeforeAStorm(t *testing.T) {
	h := newHostLog(&Lab{}, "w1")
	dir := t.TempDir()
	h.runs = func() string { return dir }
	tell := func(batch, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, batch), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, batch, "events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tell("1-a-1", "B\tos/a\t1\nD\tos/a\t0\t1\t\t\nB\tos/b\t1\n")
	if err := h.forget(); err != nil {
		t.Fatal(err)
	}
	tell("2-a-1", "B\tos/c\t1\n")
	if err := h.look(); err != nil {
		t.Fatal(err)
	}
	if len(h.done) > 0 || !slices.Equal(h.begun, []string{"os/c"}) || h.running != "os/c" || h.batch != "2-a-1" {
		t.Errorf("done %v, begun %v, at work %q of %q", h.done, h.begun, h.running, h.batch)
	}
}
