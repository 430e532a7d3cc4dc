package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

var _ Host = (*remote.Host)(nil)

func TestTwoHosts(t *testing.T) {
	f := newFleet(t, "a", "b")
	join := step("b", "join", `[[ $(value token) == token-4711 ]]; stat -c %a "$KGPU_STEP"/files/etc/x; umask`, ref("a", "token"))
	join.LateInput = func(o graph.Outputs) (graph.Input, error) {
		return graph.Input{
			Values: map[string]string{"token": string(o[ref("a", "token")]["token"])},
			Files:  map[string]graph.File{"/etc/x": {Mode: 0o640, Content: []byte("y")}},
		}, nil
	}
	r, err := f.Execute(t.Context(), graphOf(
		step("a", "prepare", `echo one; waiting "for nothing"; echo two`),
		step("b", "prepare", `echo b`),
		step("a", "token", `printf %s token-4711 | output token`, ref("a", "prepare")),
		join,
	))
	must(t, err)
	for _, s := range r.Steps {
		if s.Outcome != Done || s.Tries != 1 {
			t.Errorf("%s: %s after %d tries", s.Ref, s.Outcome, s.Tries)
		}
	}
	if got := string(r.Outputs[ref("a", "token")]["token"]); got != "token-4711" {
		t.Errorf("output is %q", got)
	}
	f.tellsNothingOf(t, "token-4711") // digits alone are in times, too
	told := f.told(event.StepStart, event.StepDone, event.Log, event.Wait)
	if got, want := of("a", told), []string{
		"step.start a prepare do prepare", "log a prepare one", "wait a prepare for nothing", "log a prepare two",
		"step.done a prepare do prepare", "step.start a token do token", "step.done a token do token",
	}; !slices.Equal(got, want) {
		t.Errorf("host a told %q", got)
	}
	if got := f.machines["a"].commands; !slices.Equal(got, []string{"batch"}) {
		t.Errorf("host a got the commands %q", got)
	}
	for _, want := range []string{"log b join 640", "log b join 0022"} {
		if !slices.Contains(told, want) {
			t.Errorf("%q is not among %q", want, told)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(f.machines["b"].Dir, "run/*/steps/*/values")); left != nil {
		t.Errorf("secrets are left in %q", left)
	}
}

func TestFailureSkipsWhatNeedsIt(t *testing.T) {
	f := newFleet(t, "a", "b")
	secret := step("a", "breaks", `for i in {1..20}; do echo "line $i"; done; exit 3`)
	secret.Input.Values = map[string]string{"password": "hunter2"}
	r, err := f.Execute(t.Context(), graphOf(
		secret,
		step("a", "needs", `echo no`, ref("a", "breaks")),
		step("a", "free", `echo yes`),
		step("b", "other", `echo yes`),
		step("b", "far", `echo no`, ref("a", "needs")),
		step("b", "named", `fail HOST_APT_LOCKED "held by	somebody"`, ref("b", "other")),
	))
	want := map[string]Outcome{"a breaks": Failed, "a needs": Skipped, "a free": Done, "b other": Done, "b far": Skipped, "b named": Failed}
	f.outcomes(t, r, want)

	var first *reason.Error
	if !errors.As(err, &first) || !errors.Is(err, &reason.Error{ID: reason.StepFailed}) || !errors.Is(err, &reason.Error{ID: reason.HostAptLocked}) {
		t.Fatalf("error is %v", err)
	}
	if first.Detail != "line 20" {
		t.Errorf("detail is %q", first.Detail)
	}
	if first.Host != "a" || first.Step != "breaks" || first.Doing != "do breaks" || *first.Exit != 3 {
		t.Errorf("error is %+v", first)
	}
	tail := strings.Split(first.Stderr, "\n")
	if len(tail) != 15 || tail[0] != "line 6" || tail[14] != "line 20" {
		t.Errorf("tail is %q", tail)
	}
	if all := reason.All(err); len(all) != 2 || all[1].Detail != "held by somebody" {
		t.Errorf("errors are %v", all)
	}
	skips := f.told(event.StepSkip)
	if want := []string{
		"step.skip a needs not begun, because a breaks failed",
		"step.skip b far not begun, because a breaks failed",
	}; !slices.Equal(skips, want) {
		t.Errorf("skips are %q", skips)
	}
	f.tellsNothingOf(t, "hunter2")
	if strings.Contains(fmt.Sprintf("%+v", err), "hunter2") {
		t.Error("the error has a value")
	}
}

func TestStepTimeout(t *testing.T) {
	f := newFleet(t, "a")
	slow := step("a", "slow", `echo begun; sleep 600`)
	slow.Timeout = time.Second
	_, err := f.Execute(t.Context(), graphOf(slow))
	var e *reason.Error
	if !errors.As(err, &e) || e.ID != reason.StepTimeout || e.Detail != "not done after 1 s" || e.Stderr != "begun" {
		t.Fatalf("error is %v", err)
	}
}

func TestTransientFailureIsTriedAgain(t *testing.T) {
	f := newFleet(t, "a")
	flaky := step("a", "flaky", `echo x >>tries; [[ $(wc -l <tries) == 3 ]] || { printf 'REPO_UNREACHABLE\tno route' >"$KGPU_STEP/failure"; exit 75; }`)
	flaky.Retry = graph.Transient
	hopeless := step("a", "hopeless", `echo x >>hopeless; exit 75`)
	hopeless.Retry = graph.Transient
	once := step("a", "once", `echo x >>once; exit 75`)
	r, err := f.Execute(t.Context(), graphOf(flaky, hopeless, once, step("a", "after", `true`, ref("a", "flaky"))))
	f.outcomes(t, r, map[string]Outcome{"a flaky": Done, "a hopeless": Failed, "a once": Failed, "a after": Done})
	if len(reason.All(err)) != 2 {
		t.Errorf("error is %v", err)
	}
	for i, want := range []int{3, 3, 1, 1} {
		if r.Steps[i].Tries != want {
			t.Errorf("%s: %d tries", r.Steps[i].Ref, r.Steps[i].Tries)
		}
	}
	waits := strings.Join(f.told(event.Wait), "\n")
	for _, want := range []string{"wait a flaky no route; try 2 of 3 in 0s", "wait a flaky no route; try 3 of 3", "wait a hopeless it failed for a reason that may pass; try 3 of 3"} {
		if !strings.Contains(waits, want) {
			t.Errorf("no %q in %q", want, waits)
		}
	}
}

// A connection that is cut anywhere neither loses nor doubles a line.
func TestCutConnection(t *testing.T) {
	script := `for i in {1..40}; do echo "line $i"; done; printf %s secret | output o`
	for name, cuts := range map[string][]int64{
		"before anything": {0},
		"in a line":       {100, 7, 50, 0, 1},
		"between lines":   {42},
		"again and again": {30, 30, 30, 30, 30, 30, 30},
		"before the end":  {560},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, "a")
			f.machines["a"].cutAfter = cuts
			r, err := f.Execute(t.Context(), graphOf(step("a", "one", script), step("a", "two", "echo end")))
			must(t, err)
			var want []string
			for i := range 40 {
				want = append(want, fmt.Sprintf("log a one line %d", i+1))
			}
			if got := f.told(event.Log); !slices.Equal(got, append(want, "log a two end")) {
				t.Errorf("told %q", got)
			}
			if got := f.told(event.StepStart, event.StepDone); len(got) != 4 {
				t.Errorf("told %q", got)
			}
			if string(r.Outputs[ref("a", "one")]["o"]) != "secret" {
				t.Errorf("outputs are %q", r.Outputs)
			}
			if n := f.machines["a"].reconnects; n != len(cuts) {
				t.Errorf("%d reconnects after %d cuts", n, len(cuts))
			}
		})
	}
}

// When the connection is cut before the bundle arrived, it is sent again, and runs once.
func TestCutBeforeTheBundleArrived(t *testing.T) {
	f := newFleet(t, "a")
	f.machines["a"].dropStdin = 1
	_, err := f.Execute(t.Context(), graphOf(step("a", "one", "echo x >>ran")))
	must(t, err)
	if got := f.machines["a"].commands; !slices.Equal(got, []string{"batch", "follow", "batch"}) {
		t.Errorf("commands are %q", got)
	}
	if ran, _ := os.ReadFile(filepath.Join(f.shared, "ran")); string(ran) != "x\n" {
		t.Errorf("ran %q", ran)
	}
}

func TestHostGoesDown(t *testing.T) {
	for name, crashes := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, "a")
			m := f.machines["a"]
			for range crashes {
				m.cutAfter = append(m.cutAfter, 60, -1) // the batch is cut in the middle, then followed to its end
			}
			m.onLost = m.PowerOff
			// The second step hangs until it was begun more often than the host crashed.
			r, err := f.Execute(t.Context(), graphOf(
				step("a", "one", `echo x >>one`),
				step("a", "two", fmt.Sprintf(`echo x >>two
					echo "a long enough line to be cut in the middle of it, or behind it"
					[[ $(wc -l <two) -gt %d ]] || exec sleep 600`, crashes)),
				step("a", "three", `echo x >>three`),
			))
			if crashes == 2 {
				if !errors.Is(err, &reason.Error{ID: reason.StepInterrupted}) {
					t.Fatalf("error is %v", err)
				}
				return
			}
			must(t, err)
			if !r.Steps[1].Interrupted || r.Steps[1].Tries != 2 || r.Steps[0].Tries != 1 || r.Steps[2].Tries != 1 {
				t.Errorf("result is %+v", r.Steps)
			}
			if waits := strings.Join(f.told(event.Wait), "\n"); !strings.Contains(waits, "it is begun once more") {
				t.Errorf("waits are %q", waits)
			}
		})
	}
}

func TestHostStaysAway(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["a"].cutAfter = []int64{20}
	f.machines["a"].refuse = errors.New("no route to host")
	r, err := f.Execute(t.Context(), graphOf(
		step("a", "one", `echo hello`), step("a", "two", `echo hello`), step("b", "one", `echo hello`), step("b", "two", "true", ref("a", "two")),
	))
	f.outcomes(t, r, map[string]Outcome{"a one": Failed, "a two": Skipped, "b one": Done, "b two": Skipped})
	var e *reason.Error
	if !errors.Is(err, remote.ErrLost) || !errors.As(err, &e) || e.ID != reason.SSHLost || e.Host != "a" || e.Step != "one" || !strings.Contains(e.Detail, "kgpu-test-") {
		t.Errorf("error is %v", err)
	}
}

func TestAnotherHostKeyAfterReconnect(t *testing.T) {
	f := newFleet(t, "a")
	f.machines["a"].cutAfter = []int64{20}
	f.machines["a"].refuse = &reason.Error{ID: reason.SSHHostKeyMismatch, Host: "a", Detail: "another key"}
	_, err := f.Execute(t.Context(), graphOf(step("a", "one", `echo hello`)))
	if !errors.Is(err, &reason.Error{ID: reason.SSHHostKeyMismatch}) {
		t.Errorf("error is %v", err)
	}
}

// Ctrl-C ends the listening, not the work.
func TestCancel(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.pipe(t, "begun", "go", "ended")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		f.read(t, "begun")
		cancel()
	}()
	r, err := f.Execute(ctx, graphOf(
		step("a", "one", `echo begun >begun; cat go; echo x >>one`),
		step("a", "two", `echo ended >ended`),
		step("b", "three", `echo x >>three`, ref("a", "one")),
	))
	f.outcomes(t, r, map[string]Outcome{"a one": Running, "a two": Running, "b three": Pending})
	var e *reason.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.ID != reason.Cancelled || e.Host != "a" || e.Step != "one" {
		t.Fatalf("error is %v", err)
	}
	if !strings.Contains(e.Detail, "goes on on the host, in the unit kgpu-"+f.batch(t, "a")+", ") {
		t.Errorf("detail is %q", e.Detail)
	}
	f.open(t, "go").Close()
	f.read(t, "ended") // the batch went on to its end
	if _, err := os.Stat(filepath.Join(f.shared, "three")); err == nil {
		t.Error("a new batch was started")
	}
}

func TestCancelBeforeAnything(t *testing.T) {
	f := newFleet(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Execute(ctx, graphOf(step("a", "one", `true`)))
	if !errors.Is(err, &reason.Error{ID: reason.Cancelled}) || !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestHostBusyAndAttach(t *testing.T) {
	f := newFleet(t, "a")
	f.pipe(t, "begun", "go")
	first := make(chan error)
	go func() {
		_, err := f.Execute(t.Context(), graphOf(step("a", "one", `echo missed; echo begun >begun; cat go; echo said`), step("a", "two", `exit 7`)))
		first <- err
	}()
	f.read(t, "begun")
	batch := f.batch(t, "a")

	other := f.another("other")
	r, err := other.Execute(t.Context(), graphOf(step("a", "one", `true`), step("a", "free", `true`)))
	other.outcomes(t, r, map[string]Outcome{"a one": Failed, "a free": Skipped})
	var busy *reason.Error
	if !errors.As(err, &busy) || busy.ID != reason.HostBusy {
		t.Fatalf("error is %v", err)
	}
	if !strings.HasPrefix(busy.Detail, "me@here holds this host: batch "+batch+", step one, since 20") {
		t.Errorf("detail is %q", busy.Detail)
	}

	attached := make(chan error)
	go func() { attached <- other.Attach(t.Context(), "a", batch) }()
	f.open(t, "go").Close()
	var e *reason.Error
	if err := <-attached; !errors.As(err, &e) || e.Step != "two" || *e.Exit != 7 || e.Host != "a" {
		t.Errorf("attached: %v", err)
	}
	if err := <-first; len(reason.All(err)) != 1 {
		t.Errorf("first: %v", err)
	}
	if told := other.told(event.Log); !slices.Equal(told, []string{"log a one missed", "log a one said"}) {
		t.Errorf("attached heard %q", told)
	}
	if err := other.Attach(t.Context(), "a", "nobody-1"); err != nil {
		t.Errorf("attaching to what is not there: %v", err)
	}
}

// Stopping a batch: a step that waits gives up, what was to come does not begin, both sides hear how it ended.
func TestStop(t *testing.T) {
	f := newFleet(t, "a")
	f.pipe(t, "begun")
	first := make(chan error)
	go func() {
		_, err := f.Execute(t.Context(), graphOf(
			step("a", "one", `echo begun >begun; until [[ -e $KGPU_STEP/../../stop ]]; do sleep 0.05; done; fail NODE_NOT_READY "not ready: w1"`),
			step("a", "two", `echo x >>two`)))
		first <- err
	}()
	f.read(t, "begun")
	other := f.another("other")
	if err := other.Stop(t.Context(), "a", f.batch(t, "a")); err != nil {
		t.Error(err)
	}
	if told := other.told(event.Warning, event.Error); !slices.Equal(told, []string{"warning a one another run asked this one to stop; not ready: w1"}) {
		t.Errorf("told %q", told)
	}
	if err := <-first; !errors.Is(err, &reason.Error{ID: reason.Cancelled}) || len(reason.All(err)) != 1 {
		t.Errorf("first: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.shared, "two")); err == nil {
		t.Error("the second step began")
	}
}

// When the step that runs ends well, the run that is stopped says which step it did not come to.
func TestStopBetweenSteps(t *testing.T) {
	f := newFleet(t, "a")
	r, err := f.Execute(t.Context(), graphOf(step("a", "one", `touch "$KGPU_STEP/../../stop"`), step("a", "two", `true`)))
	f.outcomes(t, r, map[string]Outcome{"a one": Done, "a two": Failed})
	var e *reason.Error
	if !errors.As(err, &e) || e.Step != "two" {
		t.Errorf("error is %v", err)
	}
}

// A step that makes the host forget kgpu still ends well.
func TestForget(t *testing.T) {
	f := newFleet(t, "a")
	_, err := f.Execute(t.Context(), graphOf(step("a", "reset", `touch "$KGPU_STEP/../../../../forget"; echo bye`)))
	must(t, err)
	if _, err := os.Stat(f.machines["a"].Dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if told := f.told(event.Log); !slices.Equal(told, []string{"log a reset bye"}) {
		t.Errorf("told %q", told)
	}
}

func TestBatchThatCannotBeStarted(t *testing.T) {
	f := newFleet(t, "a", "b")
	must(t, os.WriteFile(f.machines["a"].Dir, nil, 0o600)) // where a directory should be
	r, err := f.Execute(t.Context(), graphOf(step("a", "one", `true`), step("a", "two", `true`), step("b", "one", "true")))
	f.outcomes(t, r, map[string]Outcome{"a one": Failed, "a two": Skipped, "b one": Done})
	var e *reason.Error
	if !errors.As(err, &e) || e.ID != reason.StepFailed || e.Exit == nil || !strings.Contains(e.Stderr, "Not a directory") {
		t.Errorf("error is %+v", e)
	}
}

func TestLateInputThatFails(t *testing.T) {
	f := newFleet(t, "a")
	late := step("a", "late", `true`)
	late.LateInput = func(graph.Outputs) (graph.Input, error) { return graph.Input{}, errors.New("no token") }
	r, err := f.Execute(t.Context(), graphOf(step("a", "one", `true`), late, step("a", "two", "true", ref("a", "late")), step("a", "three", "true")))
	f.outcomes(t, r, map[string]Outcome{"a one": Done, "a late": Failed, "a two": Skipped, "a three": Done})
	var e *reason.Error
	if !errors.As(err, &e) || e.Step != "late" || !strings.Contains(e.Error(), "no token") {
		t.Errorf("error is %v", err)
	}
}

func TestExecuteRefuses(t *testing.T) {
	f := newFleet(t, "a")
	for name, g := range map[string]*graph.Graph{
		"no connection": graphOf(step("nobody", "one", "true")),
		"characters":    graphOf(step("a", "one|two", "true")),
		"twice":         graphOf(step("a", "one", "true"), step("a", "one", "true")),
	} {
		if r, err := f.Execute(t.Context(), g); err == nil || r == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.Run = "Über"
	if _, err := f.Execute(t.Context(), graphOf()); err == nil {
		t.Error("a run ID that is no name")
	}
}
