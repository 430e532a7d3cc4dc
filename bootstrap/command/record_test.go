package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/schema"
)

// do runs kgpu and returns what it printed and its exit status.
func do(t *testing.T, args ...string) (string, int) {
	t.Helper()
	app := App("1.2.3", Group("all", Plan(), Smoke(), Reset(), Runs(), Logs(), Timeline()))
	var out, errs bytes.Buffer
	app.Writer, app.ErrWriter = &out, &errs
	status := Run(t.Context(), app, append([]string{"kgpu"}, args...))
	return out.String() + errs.String(), status
}

// place makes a working directory with an inventory, and a state directory.
func place(t *testing.T) (state string) {
	t.Helper()
	t.Chdir(t.TempDir())
	state = t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	// Nothing listens there: the run ends when it has begun.
	text := "cluster: lab\nssh: {knownHosts: /dev/null}\nhosts: [{address: 127.0.0.1, role: control-plane, ssh: {port: 1, user: nobody, agent: false}}]\n"
	if err := os.WriteFile("inventory.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestRecorded holds that a run leaves a folder, which runs, logs and timeline find, and that plan leaves none.
func TestRecorded(t *testing.T) {
	state := place(t)
	if out, status := do(t, "plan"); status != 20 {
		t.Fatalf("plan ended with %d: %s", status, out)
	}
	if entries, _ := os.ReadDir(state); len(entries) > 0 {
		t.Errorf("plan left %v", entries)
	}
	if out, status := do(t, "smoke"); status != 20 {
		t.Fatalf("smoke ended with %d: %s", status, out)
	}
	out, status := do(t, "runs", "-o", "json")
	var runs []struct {
		history.Result
		State, Folder string
	}
	if err := json.Unmarshal([]byte(out), &runs); err != nil || status != 0 || len(runs) != 1 {
		t.Fatalf("%d, %v: %s", status, err, out)
	}
	valid(t, "runs", out)
	r := runs[0]
	if r.State != "ended" || r.Reason != "SSH_UNREACHABLE" || r.Exit != 20 || r.Command != "smoke" || r.Version != "1.2.3" || r.Cluster != "lab" || !filepath.IsAbs(r.Inventory) {
		t.Errorf("%+v", r)
	}
	events, err := history.ReadEvents(filepath.Join(r.Folder, "events.jsonl"))
	if err != nil || len(events) < 2 || events[0].Kind != event.Begin || events[len(events)-1].Kind != event.Result {
		t.Errorf("%v, %+v", err, events)
	}
	out, _ = do(t, "runs")
	for _, want := range []string{"RUN", r.Run, "lab", "smoke", "SSH_UNREACHABLE"} {
		if !strings.Contains(out, want) {
			t.Errorf("runs does not say %q:\n%s", want, out)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"runs --cluster lbb", `Did you mean "lab"? There are runs of lab`},
		{"logs", "failed: 127.0.0.1: "}, // of a run that did not come to its steps
		{"logs 127.0.0.1", "kgpu logs last 127.0.0.1"},
		{"logs last 127.0.0.1 --failed", "[SSH_UNREACHABLE]"},
	} {
		if out, _ := do(t, strings.Fields(c.args)...); !strings.Contains(out, c.want) {
			t.Errorf("%s does not say %q: %s", c.args, c.want, out)
		}
	}
	if out, status := do(t, "timeline", r.Run[:20]); status != 0 || strings.TrimSpace(out) != filepath.Join(r.Folder, "timeline.html") {
		t.Errorf("timeline ended with %d: %s", status, out)
	}
	if out, status := do(t, "timeline", "last", "--trace", "-"); status != 0 || !strings.Contains(out, `"traceEvents"`) {
		t.Errorf("timeline --trace ended with %d: %s", status, out)
	}
	if err := os.WriteFile("run.html", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, status := do(t, "timeline", filepath.Join(r.Folder, "events.jsonl"), "-o", "run.html"); status != 0 || strings.TrimSpace(out) != "run.html" {
		t.Errorf("timeline of a stream ended with %d: %s", status, out)
	}
	if info, err := os.Stat("run.html"); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("what steps printed is for everybody: %v, %v", info.Mode(), err)
	}
	if _, status := do(t, "timeline", "last", "-o", os.DevNull); status != 0 {
		t.Errorf("timeline to a device ended with %d", status)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("a device is replaced: %v, %v", info, err)
	}
}

// TestUnrecorded puts a file where the folder would be: the run ends as it would, and says so once.
func TestUnrecorded(t *testing.T) {
	state := place(t)
	if err := os.WriteFile(filepath.Join(state, "kgpu"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile("run.jsonl", []byte(stream), 0o600); err != nil {
		t.Fatal(err)
	}
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
		out, status := do(t, append([]string{"logs", "run.jsonl"}, c.args...)...)
		if status != c.status || !strings.Contains(out, c.want) {
			t.Errorf("%q: %d, %q", c.args, status, out)
		}
	}
	if out, _ := do(t, "logs", "run.jsonl", "--failed"); strings.Contains(out, "socat") {
		t.Errorf("--failed shows what went well: %s", out)
	}
}

// valid holds what was printed against its schema.
func valid(t *testing.T, name, printed string) {
	t.Helper()
	text, err := schema.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	found, err := jsonschema.UnmarshalJSON(strings.NewReader(printed))
	if err == nil {
		err = compiled.Validate(found)
	}
	if err != nil {
		t.Error(err)
	}
}
