package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/report/schema"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
)

// begin begins to record a run; warnings fail the test.
func begin(t *testing.T, root, run string) *Recorder {
	t.Helper()
	return Begin(root, Result{Run: run, Cluster: "lab", Command: "up lab.yaml", Inventory: "/home/somebody/lab.yaml", Version: "1.0"}, func(err error) { t.Error(err) })
}

// story is what a run tells, in which a step fails.
func story(run string) []event.Event {
	begun := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	exit := 100
	events := []event.Event{
		{Kind: event.Begin, Schema: event.Schema, Text: "up lab.yaml"},
		{Host: "gpu-1", Kind: event.Connect, Millis: 120},
		{Kind: event.Plan, Plan: []event.Planned{{Host: "gpu-1", Step: "os/packages", Title: "install basic packages", Reason: "missing: socat"}}},
		{Kind: event.Plan, Plan: []event.Planned{{Host: "gpu-2", Step: "os/packages", Title: "install basic packages", Reason: "missing: socat"}}},
		{Host: "gpu-1", Step: "os/packages", Kind: event.StepStart, Text: "install basic packages"},
		{Host: "gpu-2", Step: "os/packages", Kind: event.StepStart, Text: "install basic packages"},
		{Host: "gpu-1", Step: "os/packages", Kind: event.Log, Text: "Reading package lists..."},
		{Host: "gpu-2", Step: "os/packages", Kind: event.Log, Text: "E: \x1b[31mno such package\x1b[0m <b>"},
		{Host: "gpu-1", Step: "os/packages", Kind: event.StepDone, Millis: 3000},
		{Host: "gpu-2", Step: "os/packages", Kind: event.Error, Reason: "PACKAGE_MISSING", Text: "socat", Exit: &exit},
		{Kind: event.Result, Reason: "PACKAGE_MISSING", Text: "failed"},
	}
	for i := range events {
		events[i].Time, events[i].Run = begun.Add(time.Duration(i)*time.Second), run
	}
	return events
}

// told is what a run told.
func told(t *testing.T, run Run) []event.Event {
	t.Helper()
	stream := run.Stream()
	events := slices.Collect(stream.All())
	if err := stream.Err(); err != nil {
		t.Error(err)
	}
	return events
}

func list(t *testing.T, root string) []Run {
	t.Helper()
	runs, err := List(root, "")
	must(t, err)
	return runs
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func TestRecord(t *testing.T) {
	root := t.TempDir()
	const id = "20260314-150926-5f3a9c"
	r := begin(t, root, id)
	for _, e := range story(id) {
		r.Emit(e)
	}
	r.End("PACKAGE_MISSING", 85)

	runs := list(t, root)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	run := runs[0]
	want := Result{Run: id, Cluster: "lab", Command: "up lab.yaml", Inventory: "/home/somebody/lab.yaml", Version: "1.0", Reason: "PACKAGE_MISSING", Exit: 85}
	if run.State != Ended || run.Ended.Before(run.Begun) || !slices.Equal(run.Hosts, []string{"gpu-1", "gpu-2"}) {
		t.Errorf("%+v", run)
	}
	run.Result.Begun, run.Result.Ended, run.Result.Hosts = time.Time{}, time.Time{}, nil
	if fmt.Sprint(run.Result) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", run.Result, want)
	}
	events := told(t, run)
	if len(events) != len(story(id)) || events[7].Text != "E: no such package <b>" || len(events[2].Plan) != 1 {
		t.Errorf("%+v", events)
	}
	var plan []event.Planned
	if err := json.Unmarshal([]byte(content(t, filepath.Join(run.Folder, "plan.json"))), &plan); err != nil || len(plan) != 2 || plan[1].Host != "gpu-2" {
		t.Errorf("the plan is %+v: %v", plan, err)
	}
	const log = "== os/packages begun 2026-03-14T15:09:31Z\nE: no such package <b>\n== failed 2026-03-14T15:09:35Z: socat [PACKAGE_MISSING]\n"
	if got := content(t, filepath.Join(run.Folder, "logs", "gpu-2", "os+packages.log")); got != log {
		t.Errorf("the log is %q, want %q", got, log)
	}
	valid(t, content(t, filepath.Join(run.Folder, "events.jsonl")))
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if path != root && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if strings.HasPrefix(d.Name(), ".") || d.Name() == lockFile {
			t.Errorf("%s is left", path)
		}
		return nil
	})
}

// valid holds a stream against the published schema.
func valid(t *testing.T, stream string) {
	t.Helper()
	schematest.Printed(t, "event", slices.Collect(strings.Lines(stream))...)
}

// TestStates follows a run from its begin: at work while its lock is held, killed when that is gone without a result, lost
// when it came to its end and nothing could be written.
func TestStates(t *testing.T) {
	root := t.TempDir()
	is := func(want State) Run {
		t.Helper()
		run := list(t, root)[0]
		if run.State != want {
			t.Errorf("the run is %q, want %q", run.State, want)
		}
		return run
	}
	r := begin(t, root, "20260314-150926-000001")
	r.Emit(story("")[0])
	r.Emit(story("")[1])
	run := is(AtWork)
	if run.Command != "up lab.yaml" || run.Cluster != "lab" || run.Run != "20260314-150926-000001" || run.Begun.IsZero() || !slices.Equal(run.Hosts, []string{"gpu-1"}) {
		t.Errorf("%+v", run)
	}
	if took := run.Took(run.Begun.Add(time.Minute)); took != time.Minute {
		t.Errorf("it took %s", took)
	}
	must(t, r.lock.Close()) // as the kernel does
	if run := is(Killed); run.Took(time.Time{}) != time.Second {
		t.Errorf("it took %s", run.Took(time.Time{}))
	}

	r = begin(t, root, "20260314-150926-000002")
	r.Emit(story("")[0])
	r.End("ok", 0)
	is(Ended)
	must(t, os.Remove(filepath.Join(r.folder, resultFile)))
	is(Lost)
	must(t, os.WriteFile(filepath.Join(r.folder, resultFile), []byte("garbage"), 0o600))
	if run := is(Lost); run.Run != "20260314-150926-000002" || run.Begun.Format(nameTime) != "20260314-150926" || len(list(t, root)) != 2 {
		t.Errorf("%+v", run)
	}
}

func TestHostileNames(t *testing.T) {
	around := t.TempDir()
	root := filepath.Join(around, "runs")
	r := begin(t, root, "r1")
	steps := []string{"../../../../escaped", "/etc/passwd", "..", ".", "", "a/b", "a+b", strings.Repeat("x", 4000), strings.Repeat("x", 4001), "a\x00b", ".hidden", "-rf"}
	for _, host := range []string{"../../../escaped", "..", "fe80::1%eth0", strings.Repeat("h", 300)} {
		for _, step := range steps {
			r.Emit(event.Event{Host: host, Step: step, Kind: event.Log, Text: "line"})
		}
	}
	r.End("ok", 0)
	logs := filepath.Join(root, "lab", "r1", "logs")
	files := 0
	_ = filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		if !d.IsDir() && strings.HasSuffix(path, ".log") {
			files++
			if rel, err := filepath.Rel(logs, path); err != nil || strings.Count(rel, "/") != 1 || strings.HasPrefix(rel, ".") || strings.HasPrefix(d.Name(), ".") {
				t.Errorf("%s", path)
			}
		}
		return nil
	})
	// Each has its own, but what differs by what is not printable only: a\x00b is written as ab.
	if want := 4 * len(steps); files != want {
		t.Errorf("%d logs, want %d", files, want)
	}
	if entries, err := os.ReadDir(around); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestUnwritable wants one warning, and a run that goes on.
func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	var warnings []error
	r := Begin(filepath.Join(file, "runs"), Result{Run: "r1", Cluster: "lab"}, func(err error) { warnings = append(warnings, err) })
	for _, e := range story("r1") {
		r.Emit(e)
	}
	r.End("ok", 0)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "this run is not recorded") {
		t.Errorf("%v", warnings)
	}
}

// TestFull fills the disk in the middle of a run: one warning, and the result says what is missing.
func TestFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	var warnings []error
	var r *Recorder
	r = Begin(root, Result{Run: "r1", Cluster: "lab"}, func(err error) {
		warnings = append(warnings, err)
		r.Emit(event.Event{Kind: event.Warning, Text: err.Error()}) // who is warned may emit
	})
	r.Emit(story("r1")[0])
	kept := r.events
	r.events = full
	for _, e := range story("r1")[1:] {
		r.Emit(e)
	}
	must(t, kept.Close())
	r.End("ok", 0)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "no space left") {
		t.Errorf("%v", warnings)
	}
	if run := list(t, root)[0]; run.State != Ended || run.Reason != "ok" || !strings.Contains(run.Cut, "no space left") {
		t.Errorf("%+v", run)
	}
}

// kinds are all kinds of event, as the schema has them.
func kinds(t *testing.T) (kinds []event.Kind) {
	t.Helper()
	var document struct {
		Properties struct{ Event struct{ Enum []event.Kind } }
	}
	text, err := schema.Named("event")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil || len(document.Properties.Event.Enum) < 10 {
		t.Fatalf("%v, %v", document, err)
	}
	return document.Properties.Event.Enum
}

// TestUnendingEvents lets a host tell without an end, each kind of event: its folder has a bound, in which how its steps ended
// has a place, and what others tell is all there.
func TestUnendingEvents(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(string(kind), func(t *testing.T) {
			root := t.TempDir()
			r := begin(t, root, "r1")
			r.budget.Spend("gpu-1", event.MaxHostBytes-1<<20) // before
			text := strings.Repeat("x", 32<<10)
			for i := range 192 {
				r.Emit(event.Event{Host: "gpu-1", Step: fmt.Sprint("step-", i%300), Kind: kind, Text: text})
			}
			r.Emit(event.Event{Host: "gpu-1", Step: "os/packages", Kind: event.StepDone})
			r.Emit(event.Event{Host: "gpu-2", Step: "os/packages", Kind: event.Log, Text: "other"})
			r.End("ok", 0)
			run := list(t, root)[0]
			if size := sizeOf(run.Folder); size > mostEnds+2<<20 {
				t.Errorf("the folder has %d bytes", size)
			}
			if !strings.Contains(run.Cut, "gpu-1 told more than 32 MiB") {
				t.Errorf("cut: %q", run.Cut)
			}
			events := told(t, run)
			if n := len(slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return e.Kind != event.Warning || e.Text != run.Cut })); n != 1 {
				t.Errorf("%d events say that something is left out", n)
			}
			if last := events[len(events)-1]; last.Text != "other" {
				t.Errorf("the last is %.100v", last)
			}
			if ended := events[len(events)-2]; ended.Kind != event.StepDone && kind != event.StepDone && kind != event.StepSkip && kind != event.Error && kind != event.Result {
				t.Errorf("how its step ended is not there, but %.100v", ended)
			}
			if log := content(t, filepath.Join(run.Folder, "logs", "gpu-2", "os+packages.log")); log != "other\n" {
				t.Errorf("the other's log is %q", log)
			}
		})
	}
}

// TestManyHostsWithoutEnd holds that a run's folder has a bound, too, beside that of each host.
func TestManyHostsWithoutEnd(t *testing.T) {
	root := t.TempDir()
	r := begin(t, root, "r1")
	r.limit = 1 << 20
	for i := range 1 << 10 {
		r.Emit(event.Event{Host: fmt.Sprint("gpu-", i), Step: "os/packages", Kind: event.Log, Text: strings.Repeat("x", 8<<10)})
	}
	r.Emit(event.Event{Kind: event.Result, Reason: "ok"})
	r.End("ok", 0)
	run := list(t, root)[0]
	events := told(t, run)
	if size := sizeOf(run.Folder); size > 2<<20 || events[len(events)-1].Kind != event.Result || !strings.Contains(run.Cut, "more than 1 MiB in all") {
		t.Errorf("%d bytes, cut %q, in the end %.100v", size, run.Cut, events[len(events)-1])
	}
}

// TestListOfALongRun holds that a list of runs reads no more than the ends of one that was killed.
func TestListOfALongRun(t *testing.T) {
	root := t.TempDir()
	r := begin(t, root, "20260314-150926-000001")
	for _, e := range story("")[:4] {
		r.Emit(e)
	}
	line, err := json.Marshal(event.Event{Time: story("")[4].Time, Host: "gpu-1", Kind: event.Wait, Text: strings.Repeat("w", 1<<10)})
	must(t, err)
	block := bytes.Repeat(append(line, '\n'), 1<<10)
	for range 300 {
		if _, err := r.events.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	r.Emit(story("")[10])
	must(t, r.lock.Close()) // as the kernel does
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run := list(t, root)[0]
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 24*end {
		t.Errorf("%d bytes were allocated", got)
	}
	if run.State != Killed || run.Command != "up lab.yaml" || !run.Ended.Equal(story("")[10].Time) || !slices.Equal(run.Hosts, []string{"gpu-1", "gpu-2"}) {
		t.Errorf("%+v", run)
	}
}

// TestStreamOfALongRun holds that who looks into a run has one event at a time.
func TestStreamOfALongRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	line, err := json.Marshal(event.Event{Host: "gpu-1", Step: "s", Kind: event.Log, Text: strings.Repeat("w", 1<<10)})
	must(t, err)
	must(t, os.WriteFile(path, bytes.Repeat(append(line, '\n'), 16<<10), 0o600))
	_, stream, err := Open(path)
	must(t, err)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, n := m.HeapAlloc, 0
	lines, err := Lines(stream.All(), "gpu-1", "s", false)
	must(t, err)
	for range lines {
		if n++; n%(4<<10) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > before+8<<20 {
				t.Errorf("after %d lines the heap has %d bytes more", n, m.HeapAlloc-before)
			}
		}
	}
	if n != 16<<10 || stream.Err() != nil {
		t.Errorf("%d lines, %v", n, stream.Err())
	}
}

func TestManyAtOnce(t *testing.T) {
	root := t.TempDir()
	r := begin(t, root, "r1")
	const hosts, each = 250, 8 // more than logs are open
	var group sync.WaitGroup
	for i := range hosts {
		group.Go(func() {
			for range each {
				r.Emit(event.Event{Host: fmt.Sprintf("gpu-%d", i), Step: "os/packages", Kind: event.Log, Text: "line"})
			}
		})
	}
	group.Wait()
	if len(r.logs) > mostOpen {
		t.Errorf("%d logs are open", len(r.logs))
	}
	r.End("ok", 0)
	for i := range hosts {
		if got := content(t, filepath.Join(root, "lab", "r1", "logs", fmt.Sprintf("gpu-%d", i), "os+packages.log")); got != strings.Repeat("line\n", each) {
			t.Fatalf("gpu-%d has %q", i, got)
		}
	}
}

// TestPrune keeps the newest runs, and those at work.
func TestPrune(t *testing.T) {
	root := t.TempDir()
	name := func(i int) string { return fmt.Sprintf("20260314-15%04d-aaaaaa", i) }
	oldest := begin(t, root, name(0)) // at work
	for i := range Kept + 5 {
		begin(t, root, name(i+1)).End("ok", 0)
	}
	other := filepath.Join(root, "other", name(0))
	must(t, os.MkdirAll(other, 0o700))
	leftover := filepath.Join(root, "lab", ".20260313-000000-bbbbbb")
	must(t, os.Mkdir(leftover, 0o700))
	begin(t, root, name(Kept+6)).End("ok", 0)
	var got []string
	runs, err := List(root, "lab")
	must(t, err)
	for _, r := range runs {
		got = append(got, r.Run)
	}
	want := []string{name(0)}
	for i := range Kept {
		want = append(want, name(i+7))
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another cluster's run: %v", err)
	}
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left of a begin: %v", err)
	}
	oldest.End("ok", 0)
}

// TestPruneByBytes lets the oldest go where there are too many bytes, but neither what is at work nor the newest that has ended.
func TestPruneByBytes(t *testing.T) {
	root := t.TempDir()
	cluster := filepath.Join(root, "lab")
	working := begin(t, root, "20260314-150000-aaaaaa")
	for i := range 5 {
		r := begin(t, root, fmt.Sprintf("20260314-15000%d-bbbbbb", i+1))
		r.Emit(event.Event{Kind: event.Log, Text: strings.Repeat("x", 1<<20)})
		r.End("ok", 0)
	}
	left := func(bytes int64) (names []string) {
		prune(cluster, Kept, bytes)
		for _, r := range list(t, root) {
			names = append(names, r.Run[12:15])
		}
		return names
	}
	for _, c := range []struct {
		bytes int64
		want  []string
	}{{11 << 20, []string{"005", "004", "003", "002", "001", "000"}}, {5 << 20, []string{"005", "004", "000"}}, {1, []string{"005", "000"}}} {
		if got := left(c.bytes); !slices.Equal(got, c.want) {
			t.Errorf("of %d bytes: %v are left, want %v", c.bytes, got, c.want)
		}
	}
	working.End("ok", 0)
}

func TestStream(t *testing.T) {
	const whole = `{"time":"2026-03-14T15:09:26Z","run":"r1","host":"","step":"","event":"begin","reason":"","ms":0,"text":"up","schema":1,"later":true}` + "\n"
	for name, c := range map[string]struct {
		text string
		want int
		err  string
	}{
		"cut off":        {whole + whole[:40], 1, ""},
		"empty":          {"", 0, ""},
		"something":      {whole + "hello\n", 1, ":2: no event of kgpu"},
		"a later kgpu's": {strings.Replace(whole, `"schema":1`, `"schema":99`, 1), 0, "version 99"},
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		must(t, os.WriteFile(path, []byte(c.text), 0o600))
		_, stream, err := Open(path)
		must(t, err)
		events := slices.Collect(stream.All())
		err = stream.Err()
		if len(events) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	for state, want := range map[string]string{"/state": "/state/kgpu/runs", "": "/home/somebody/.local/state/kgpu/runs", "relative": "/home/somebody/.local/state/kgpu/runs"} {
		t.Setenv("XDG_STATE_HOME", state)
		if got, err := Root(); got != want || err != nil {
			t.Errorf("%q: %s, %v", state, got, err)
		}
	}
}

func TestFind(t *testing.T) {
	var runs []Run
	for _, id := range []string{"20260314-160000-cccccc", "20260314-150926-bbbbbb", "20260313-150926-aaaaaa"} {
		runs = append(runs, Run{Result: Result{Run: id}, Folder: t.TempDir()})
	}
	if got, err := Find(runs, ""); err != nil || got.Run != runs[0].Run {
		t.Errorf("where no run began a step: %s, %v", got.Run, err)
	}
	must(t, os.MkdirAll(filepath.Join(runs[0].Folder, logsFolder), 0o700))
	nothingToDo := Run{Result: Result{Run: "20260315-090000-dddddd"}, Folder: t.TempDir()}
	runs = slices.Insert(runs, 0, nothingToDo)
	for _, c := range []struct{ word, want, err string }{
		{"", "20260314-160000-cccccc", ""},
		{"last", "20260314-160000-cccccc", ""},
		{"20260313", "20260313-150926-aaaaaa", ""},
		{"20260314-150926-bbbbbb", "20260314-150926-bbbbbb", ""},
		{"20260314", "", "2 runs begin with"},
		{"20260314-150926-bbbbbc", "", `Did you mean "20260314-150926-bbbbbb"?`},
		{"lats", "", `Did you mean "last"?`},
		{"gpu-1", "", "kgpu runs lists them"},
	} {
		got, err := Find(runs, c.word)
		if got.Run != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %s, %v", c.word, got.Run, err)
		}
	}
	if _, err := Find(nil, ""); err == nil {
		t.Error("a run was found where there is none")
	}
}

func TestLines(t *testing.T) {
	events := story("r1")
	for _, c := range []struct {
		host, step string
		failed     bool
		want       int
		err        string
	}{
		{"", "", false, 3, ""},
		{"gpu-1", "", false, 1, ""},
		{"gpu-2", "os/packages", false, 2, ""},
		{"", "", true, 2, ""},
		{"gpu-1", "", true, 0, ""},
		{"gpu1", "", false, 0, `Did you mean "gpu-1"?`},
		{"gpu-1", "os/package", false, 0, `Did you mean "os/packages"?`},
		{"somewhere-else", "", false, 0, "there are gpu-1, gpu-2"},
	} {
		lines, err := Lines(slices.Values(events), c.host, c.step, c.failed)
		var got []event.Event
		if err == nil {
			got = slices.Collect(lines)
		}
		if len(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %d lines, %v", c, len(got), err)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
