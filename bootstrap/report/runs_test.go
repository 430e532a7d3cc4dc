package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
)

// someRuns is a run of each kind.
func someRuns() ([]history.Run, time.Time) {
	begun := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	run := func(id, command, why string, state history.State) history.Run {
		return history.Run{State: state, Result: history.Result{
			Run: id, Cluster: "lab", Command: command, Begun: begun, Ended: begun.Add(7*time.Minute + 12*time.Second), Reason: why, Hosts: []string{"w1", "w2"},
		}}
	}
	back := run("20260314-150921-000005", "smoke", "", history.Lost)
	back.Ended = begun.Add(-time.Hour) // the clock was set
	return []history.Run{
		run("20260314-150925-000001", "up inventory.yaml", "", history.AtWork),
		run("20260314-150924-000002", "add-worker 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.24", "ok", history.Ended),
		run("20260314-150923-000003", "up inventory.yaml"+evil, "SSH_UNREACHABLE", history.Ended),
		run("20260314-150922-000006", "up inventory.yaml", "CANCELLED", history.Ended),
		run("20260314-150922-000004", "reset", "", history.Killed),
		back,
	}, begun.Add(time.Hour)
}

func TestPrintRuns(t *testing.T) {
	inUTC(t)
	runs, now := someRuns()
	for name, look := range map[string]Look{"runs.txt": {}, "runs-narrow.txt": {Width: 80}, "runs-narrower.txt": {Width: 50}, "runs-colour.txt": {Colour: true, Width: 120}} {
		out := &Sheet{As: look}
		must(t, PrintRuns(out, runs, now))
		golden(t, name, out.String())
		if what := dangerous(out.String()); what != "" && !look.Colour {
			t.Errorf("%s: %s", name, what)
		}
	}
}

func TestPrintLogs(t *testing.T) {
	status := 1
	events := []event.Event{
		{Time: fleetBegins, Host: "w1", Step: "os/packages", Kind: event.Log, Text: "Setting up" + evil},
		{Time: fleetBegins, Host: "control-1", Step: "cluster/init", Kind: event.Error, Text: "no\nroom", Reason: "HOST_DISK_FULL", Exit: &status},
	}
	cut := event.Event{Time: fleetBegins, Host: "w1", Step: "os/packages", Kind: event.Error, Text: "cancelled; it goes on", Reason: "CANCELLED"}
	left := ""
	print := func(look Look, events ...event.Event) string {
		out := &Sheet{As: look}
		must(t, PrintLogs(out, history.Run{Result: history.Result{Cut: left}}, slices.Values(events)))
		return out.String()
	}
	inUTC(t)
	const want = "15:09:26  w1         os/packages   Setting up\n" +
		"15:09:26  control-1  cluster/init  failed: no\n15:09:26  control-1  cluster/init  room (exit status 1) [HOST_DISK_FULL]\n"
	if got := strings.ReplaceAll(print(Look{}, events...), "\uFFFD", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	coloured := print(Look{Colour: true}, events...)
	if strings.Count(coloured, red) != 2 || strings.Count(coloured, "\x1b") != 4 {
		t.Errorf("failures are not red, or others are: %q", coloured)
	}
	if got, want := print(Look{Colour: true}, cut), yellow+"15:09:26  w1  os/packages  cancelled; it goes on"+reset+"\n"; got != want {
		t.Errorf("cut short: %q, want %q", got, want)
	}
	left = "w1 told more" + evil
	if got := print(Look{}, cut); !strings.Contains(got, "\nnot all of it is here: w1 told more") || dangerous(got) != "" {
		t.Errorf("what is left out is not told: %q", got)
	}
}

func TestPrintSilence(t *testing.T) {
	runs, _ := someRuns()
	told := []event.Event{{Run: "r1", Kind: event.Begin, Text: "up"}, {Run: "r1", Kind: event.Result, Text: "done: well" + evil}}
	for _, c := range []struct {
		run    history.Run
		failed bool
		want   string
	}{
		{runs[1], false, "run 20260314-150924-000002 (kgpu add-worker 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.24, ok): nothing was printed; done: well"},
		{runs[0], true, "run 20260314-150925-000001 (kgpu up inventory.yaml, at work): nothing failed; done: well"},
		{history.Run{}, false, "run r1: nothing was printed; done: well"}, // of a stream
	} {
		var out bytes.Buffer
		if err := PrintSilence(&out, c.run, slices.Values(told), c.failed); err != nil || !strings.HasPrefix(out.String(), c.want) || dangerous(out.String()) != "" {
			t.Errorf("%q, %v, want %q", out.String(), err, c.want)
		}
	}
}

// inUTC makes the local time that of everywhere.
func inUTC(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
}
