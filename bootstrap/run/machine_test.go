package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// machine is a host whose commands run in a local bash, over a connection that can be cut.
type machine struct {
	*runnertest.Host
	id string

	mu         sync.Mutex
	cutAfter   []int64  // bytes of standard output after which the next connections are cut; then they hold
	commands   []string // names of the commands so far
	refuse     error    // what Reconnect says
	reconnects int
	onLost     func() // called before ErrLost is reported
	dropStdin  int    // so many commands are cut before their input arrives
}

func newMachine(t *testing.T, id string) *machine {
	return &machine{Host: runnertest.NewHost(t), id: id}
}

func (m *machine) ID() string { return m.id }

func (m *machine) Reconnect(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reconnects++
	return m.refuse
}

func (m *machine) Run(ctx context.Context, c remote.Command) error {
	m.mu.Lock()
	m.commands = append(m.commands, c.Name)
	cut := int64(-1)
	if len(m.cutAfter) > 0 {
		cut, m.cutAfter = m.cutAfter[0], m.cutAfter[1:]
	}
	onLost := m.onLost
	drop := m.dropStdin > 0
	m.dropStdin = max(0, m.dropStdin-1)
	m.mu.Unlock()
	if drop {
		return remote.ErrLost
	}

	var stderr strings.Builder
	cmd := m.Shell(c.Line)
	cmd.Stdin, cmd.Stderr = c.Stdin, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	hangUp := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	defer hangUp()
	defer context.AfterFunc(ctx, hangUp)()

	if cut >= 0 {
		_, err = io.CopyN(c.Stdout, stdout, cut)
		if err == nil {
			hangUp()
			_ = cmd.Wait()
			if onLost != nil {
				onLost()
			}
			return remote.ErrLost
		}
	} else {
		_, _ = io.Copy(c.Stdout, stdout)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &remote.ExitError{Host: m.id, Command: c.Name, Status: exit.ExitCode(), Stderr: stderr.String()}
	}
	return err
}

// fleet is an engine over machines.
type fleet struct {
	*Engine
	*event.Recorder
	machines map[string]*machine
	shared   string // the directory in which all steps run
}

const testLib = `value() { cat "$KGPU_STEP/values/$1"; }
output() { mkdir -p "$KGPU_STEP/out" && cat >"$KGPU_STEP/out/$1"; }
fail() { printf '%s\t%s\n' "$1" "$2" >"$KGPU_STEP/failure"; exit 1; }
waiting() { printf 'W\t%s\n' "$1"; }
warning() { printf '!\t%s\n' "$1"; }
settle_step() { :; }
`

// newFleet makes machines; a step's script is the text that its Script field holds.
func newFleet(t *testing.T, hosts ...string) *fleet {
	t.Helper()
	f := &fleet{Recorder: &event.Recorder{}, machines: map[string]*machine{}, shared: t.TempDir()}
	f.Engine = &Engine{
		Run: "test", By: "me@here", Hosts: map[string]Host{}, Events: f.Recorder, Lib: []byte(testLib),
		Script: func(text string) ([]byte, error) {
			return []byte("set -euo pipefail\ncd " + f.shared + "\n. \"$KGPU_STEP/../../lib.sh\"\n" + text + "\n"), nil
		},
		pause: func(int) time.Duration { return 0 },
	}
	for _, id := range hosts {
		f.machines[id] = newMachine(t, id)
		f.Hosts[id] = &rooted{f.machines[id]}
	}
	return f
}

// rooted puts each machine's own directory in the place of the engine's.
type rooted struct{ *machine }

func (r *rooted) Run(ctx context.Context, c remote.Command) error {
	c.Line = strings.ReplaceAll(c.Line, DefaultDir, r.Dir)
	return r.machine.Run(ctx, c)
}

func step(host, id, script string, needs ...graph.Ref) *graph.Step {
	return &graph.Step{Ref: graph.Ref{Host: host, ID: id}, Title: "do " + id, Script: script, Timeout: time.Minute, Needs: needs}
}

func graphOf(steps ...*graph.Step) *graph.Graph { return &graph.Graph{Steps: steps} }

func ref(host, id string) graph.Ref { return graph.Ref{Host: host, ID: id} }

// told lists the events of these kinds as "kind host step text".
func (f *fleet) told(kinds ...event.Kind) []string {
	var out []string
	for _, e := range f.Recorder.Events() {
		if slices.Contains(kinds, e.Kind) {
			out = append(out, strings.TrimSpace(strings.Join([]string{string(e.Kind), e.Host, e.Step, e.Text}, " ")))
		}
	}
	return out
}

// batch is the name of the only batch that a machine has.
func (f *fleet) batch(t *testing.T, host string) string {
	t.Helper()
	dirs, err := os.ReadDir(filepath.Join(f.machines[host].Dir, "run"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%s has the batches %v, %v", host, dirs, err)
	}
	return dirs[0].Name()
}

// of keeps what one host told.
func of(host string, told []string) []string {
	return slices.DeleteFunc(slices.Clone(told), func(s string) bool { return strings.Fields(s)[1] != host })
}

func (f *fleet) outcomes(t *testing.T, r *Result, want map[string]Outcome) {
	t.Helper()
	got := map[string]Outcome{}
	for _, s := range r.Steps {
		got[s.Ref.String()] = s.Outcome
	}
	if !maps.Equal(got, want) {
		t.Errorf("outcomes are %v, not %v", got, want)
	}
}

// tellsNothingOf fails when an event has the secret.
func (f *fleet) tellsNothingOf(t *testing.T, secret string) {
	t.Helper()
	if all := fmt.Sprintf("%+v", f.Recorder.Events()); strings.Contains(all, secret) {
		t.Errorf("the secret is in the events: %s", all)
	}
}

// another is a second engine for the same machines, as of another kgpu.
func (f *fleet) another(run string) *fleet {
	events := &event.Recorder{}
	e := &Engine{Run: run, By: "you@there", Hosts: f.Hosts, Events: events, Lib: f.Lib, Script: f.Script, pause: f.pause}
	return &fleet{Engine: e, Recorder: events, machines: f.machines, shared: f.shared}
}

// pipe makes named pipes that scripts block on: `cat NAME` ends when the test opens and closes it.
func (f *fleet) pipe(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, syscall.Mkfifo(filepath.Join(f.shared, name), 0o600))
	}
}

// open waits until somebody reads from a pipe.
func (f *fleet) open(t *testing.T, name string) *os.File {
	p, err := os.OpenFile(filepath.Join(f.shared, name), os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
	}
	return p
}

// read waits until somebody wrote to a pipe and closed it.
func (f *fleet) read(t *testing.T, name string) {
	if _, err := os.ReadFile(filepath.Join(f.shared, name)); err != nil {
		t.Error(err)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
