package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
)

// do runs kgpu and returns what it printed and its exit status.
func do(t *testing.T, args ...string) (string, int) {
	t.Helper()
	app := App("1.2.3", Group("all", Plan(), Up(), Smoke(), Reset(), Dashboard(), Notebook(), User(), Runs()), FormerNames())
	var out, errs bytes.Buffer
	app.Writer, app.ErrWriter = &out, &errs
	status := Run(t.Context(), app, append([]string{"kgpu"}, args...))
	return out.String() + errs.String(), status
}

// ends runs kgpu, wants this exit status of it, and returns what it printed.
func ends(t *testing.T, want int, args ...string) string {
	t.Helper()
	out, status := do(t, args...)
	if status != want {
		t.Fatalf("kgpu %s ended with %d, want %d:\n%s", strings.Join(args, " "), status, want, out)
	}
	return out
}

// place makes a working directory with an inventory, and a state directory.
func place(t *testing.T) (state string) {
	t.Helper()
	t.Chdir(t.TempDir())
	state = t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	// Nothing listens there: the run ends when it has begun.
	text := "cluster: lab\nssh: {knownHosts: /dev/null}\nhosts: [{address: 127.0.0.1, role: control-plane, ssh: {port: 1, user: nobody, agent: false}}]\n"
	must(t, os.WriteFile("inventory.yaml", []byte(text), 0o600))
	return state
}

// TestRecorded holds that a run leaves a folder, which runs and the commands below it find, and that plan leaves none.
func TestRecorded(t *testing.T) {
	state := place(t)
	ends(t, 20, "plan")
	if out, _ := do(t, "plan", "-o", "json"); strings.Contains(out, `"event"`) {
		t.Errorf("plan prints events: %s", out)
	}
	if entries, _ := os.ReadDir(state); len(entries) > 0 {
		t.Errorf("plan left %v", entries)
	}
	ends(t, 3, "user", "create", "Alice_B")
	if left, _ := filepath.Glob(filepath.Join(state, "*", "*", "*", "*")); len(left) > 0 {
		t.Errorf("a mistyped command left %q", left)
	}
	ends(t, 20, "smoke")
	out, status := do(t, "runs", "-o", "json")
	var runs []struct {
		history.Result
		State, Folder string
	}
	if err := json.Unmarshal([]byte(out), &runs); err != nil || status != 0 || len(runs) != 1 {
		t.Fatalf("%d, %v: %s", status, err, out)
	}
	schematest.Printed(t, "runs", out)
	r := runs[0]
	if r.State != "ended" || r.Reason != "SSH_UNREACHABLE" || r.Exit != 20 || r.Command != "smoke" || r.Version != "1.2.3" || r.Cluster != "lab" || !filepath.IsAbs(r.Inventory) {
		t.Errorf("%+v", r)
	}
	told := history.Run{Folder: r.Folder}.Stream()
	events := slices.Collect(told.All())
	if err := told.Err(); err != nil || len(events) < 2 || events[0].Kind != event.Begin || events[len(events)-1].Kind != event.Result {
		t.Errorf("%v, %+v", err, events)
	}
	out, _ = do(t, "runs")
	contains(t, out, "RUN", r.Run, "lab", "smoke", "SSH_UNREACHABLE")
	for _, c := range []struct{ args, want string }{
		{"runs --cluster lbb", `Did you mean "lab"? There are runs of lab`},
		{"runs logs", "failed: 127.0.0.1: "}, // of a run that did not come to its steps
		{"runs logs 127.0.0.1", "kgpu runs logs last 127.0.0.1"},
		{"runs logs last 127.0.0.1 --failed", "[SSH_UNREACHABLE]"},
		{"runs show", "command    kgpu smoke\n"},
		{"runs show " + r.Run[:20], "result     SSH_UNREACHABLE (exit status 20)\n"},
		{"runs show " + r.Folder, "folder     " + r.Folder + "\n"},
		{"runs show " + r.Folder + "/events.jsonl", "a stream of events"},
	} {
		if out, _ := do(t, strings.Fields(c.args)...); !strings.Contains(out, c.want) {
			t.Errorf("%s does not say %q: %s", c.args, c.want, out)
		}
	}
	if out := ends(t, 0, "runs", "timeline", r.Run[:20]); strings.TrimSpace(out) != filepath.Join(r.Folder, "timeline.html") {
		t.Errorf("timeline says %s", out)
	}
	contains(t, ends(t, 0, "runs", "timeline", "last", "--trace", "-"), `"traceEvents"`)
	must(t, os.WriteFile("run.html", nil, 0o644))
	if out := ends(t, 0, "runs", "timeline", filepath.Join(r.Folder, "events.jsonl"), "--file", "run.html"); strings.TrimSpace(out) != "run.html" {
		t.Errorf("timeline of a stream says %s", out)
	}
	if info, err := os.Stat("run.html"); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("what steps printed is for everybody: %v, %v", info.Mode(), err)
	}
	ends(t, 0, "runs", "timeline", "last", "--file", os.DevNull)
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("a device is replaced: %v, %v", info, err)
	}
}

// TestWhoIsRecorded holds that whatever changes the cluster leaves a run, and that what only looks leaves none.
func TestWhoIsRecorded(t *testing.T) {
	place(t)
	for _, command := range []string{"notebook", "user list"} {
		ends(t, 20, strings.Fields(command)...)
	}
	if out, _ := do(t, "runs"); out != "No run is recorded yet.\n" {
		t.Errorf("what looks leaves runs:\n%s", out)
	}
	for _, command := range []string{"dashboard", "dashboard --remove", "user create joe", "user delete joe", "smoke"} {
		ends(t, 20, strings.Fields(command)...)
	}
	out, _ := do(t, "runs", "-o", "json")
	for command, want := range map[string]int{"dashboard": 2, "user create joe": 1, "user delete joe": 1, "smoke": 1} {
		if got := strings.Count(out, `"command": "`+command+`"`); got != want {
			t.Errorf("%d runs of %s, want %d:\n%s", got, command, want, out)
		}
	}
	if out, _ := do(t, "runs", "logs"); strings.Count(out, "[SSH_UNREACHABLE]") != 1 {
		t.Errorf("the reason is not there once:\n%s", out)
	}
}

// A person sees the newest runs, and is told how many more there are; a program gets all.
func TestNewestRuns(t *testing.T) {
	root := filepath.Join(place(t), "kgpu", "runs", "lab")
	for i := range 22 {
		folder := filepath.Join(root, fmt.Sprintf("20260314-1509%02d-aaaaaa", i))
		must(t, os.MkdirAll(folder, 0o700))
		text := fmt.Sprintf(`{"run": %q, "cluster": "lab", "command": "up", "begun": "2026-03-14T15:09:26Z", "ended": "2026-03-14T15:09:27Z", "reason": "ok"}`, filepath.Base(folder))
		for name, text := range map[string]string{"result.json": text, "events.jsonl": `{"event":"result","text":"done: all of it"}` + "\n"} {
			must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
	}
	for _, c := range []struct {
		args string
		runs int
		more string
	}{
		{"runs", 20, "\n2 older runs left out: --all lists them, too\n"}, {"runs --cluster lab", 20, "2 older runs"}, {"runs --all", 22, ""}, {"runs list", 20, "2 older runs"}, {"runs list --all", 22, ""}, {"runs -o json", 22 * 2, ""}, // each with its folder
	} {
		out, status := do(t, strings.Fields(c.args)...)
		if status != 0 || strings.Count(out, "-aaaaaa") != c.runs || !strings.Contains(out, c.more) || c.more == "" && strings.Contains(out, "left out") {
			t.Errorf("%s ended with %d:\n%s", c.args, status, out)
		}
	}
	for args, want := range map[string]string{
		"runs logs": "run 20260314-150921-aaaaaa (kgpu up, ok): nothing was printed; done: all of it\n", "runs logs --failed": "run 20260314-150921-aaaaaa (kgpu up, ok): nothing failed; done: all of it\n",
	} {
		if out, status := do(t, strings.Fields(args)...); status != 0 || out != want {
			t.Errorf("%s: %d, %q", args, status, out)
		}
	}
}

// TestUnrecorded puts a file where the folder would be: the run ends as it would, and says so once.
func TestUnrecorded(t *testing.T) {
	state := place(t)
	must(t, os.WriteFile(filepath.Join(state, "kgpu"), nil, 0o600))
	out, status := do(t, "smoke", "-o", "json")
	if status != 20 || strings.Count(out, `"event":"warning"`) != 1 || !strings.Contains(out, "this run is not recorded") || !strings.Contains(out, `"event":"result"`) {
		t.Errorf("smoke ended with %d: %s", status, out)
	}
}

func TestLogs(t *testing.T) {
	place(t)
	stream := `{"time":"2026-03-14T15:09:26Z","run":"r1","host":"gpu-1","step":"os/packages","event":"log","reason":"","ms":0,"text":"Setting up \u001b[31msocat"}
{"time":"2026-03-14T15:09:27Z","run":"r1","host":"control-1","step":"cluster/init","event":"error","reason":"STEP_FAILED","ms":0,"text":"no","exit":1}
`
	must(t, os.WriteFile("run.jsonl", []byte(stream), 0o600))
	t.Setenv("TZ", "UTC")
	for _, c := range []struct {
		args   []string
		want   string
		status int
	}{
		{nil, "  gpu-1      os/packages   Setting up socat\n", 0},
		{nil, "  control-1  cluster/init  failed: no (exit status 1) [STEP_FAILED]\n", 0},
		{[]string{"gpu-1"}, "  gpu-1  os/packages  Setting up socat\n", 0},
		{[]string{"--failed"}, "  control-1  cluster/init  failed: no (exit status 1) [STEP_FAILED]\n", 0},
		{[]string{"gpo-1"}, `Did you mean "gpu-1"?`, 3},
		{[]string{"gpu-1", "os/pakages"}, `Did you mean "os/packages"?`, 3},
		{[]string{"a", "b", "c"}, "a run, a host and a step", 3},
	} {
		out, status := do(t, append([]string{"runs", "logs", "run.jsonl"}, c.args...)...)
		if status != c.status || !strings.Contains(out, c.want) {
			t.Errorf("%q: %d, %q", c.args, status, out)
		}
	}
	if out, _ := do(t, "runs", "logs", "run.jsonl", "--failed"); strings.Contains(out, "socat") {
		t.Errorf("--failed shows what went well: %s", out)
	}
}

// The commands that are below runs are found by their former names, too, and say the same.
func TestFormerNames(t *testing.T) {
	place(t)
	ends(t, 20, "smoke")
	for _, line := range []string{"logs", "logs last 127.0.0.1 --failed", "logs no-such-run", "timeline --trace -", "timeline --file - last"} {
		words := strings.Fields(line)
		former, was := do(t, words...)
		if now, is := do(t, append([]string{"runs"}, words...)...); former == "" || former != now || was != is {
			t.Errorf("kgpu %s ended with %d, and kgpu runs %s with %d:\n%s\n%s", line, was, line, is, former, now)
		}
	}
}

// Before the first use of an inventory kgpu says, without a connection, what of this machine it uses; never what that is.
func TestFirstUseOfAnInventory(t *testing.T) {
	place(t)
	text := "cluster: lab\nhosts: [{address: 127.0.0.1, role: control-plane, ssh: {port: 1, user: nobody, agent: false, sudoPassword: \"${LAB_SUDO}\", knownHosts: /dev/null}}]\n"
	must(t, os.WriteFile("inventory.yaml", []byte(text), 0o600))
	t.Setenv("LAB_SUDO", "hunter2")
	const says = "Of what is yours, it makes use of:\n  ${LAB_SUDO}: is given to sudo on nobody@127.0.0.1\n"
	for range 2 { // looking is no use
		if out := ends(t, 20, "plan"); !strings.Contains(out, says) || strings.Contains(out, "hunter2") {
			t.Errorf("plan says %s", out)
		}
	}
	if out, _ := do(t, "plan", "-o", "json"); strings.Contains(out, "makes use") {
		t.Errorf("plan prints for people: %s", out)
	}
	contains(t, ends(t, 20, "up"), says)
	for _, again := range []string{"plan", "up"} {
		if out := ends(t, 20, again); strings.Contains(out, "makes use") {
			t.Errorf("%s says %s", again, out)
		}
	}
	must(t, os.Rename("inventory.yaml", "other.yaml"))
	if out, _ := do(t, "plan", "other.yaml"); !strings.Contains(out, says) {
		t.Errorf("of another inventory plan says: %s", out)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contains wants all of the parts in a text.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
