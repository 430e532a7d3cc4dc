package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// quick lets who holds say so often. A host that hears nothing is patient, however busy this machine is.
func (f *fleet) quick() *fleet {
	f.Heartbeat, f.HeartbeatTimeout = 20*time.Millisecond, time.Minute
	return f
}

// eavesdropper tells a test the lines of a host's answers.
type eavesdropper struct {
	Host
	heard chan string
}

func eavesdrop(h Host) *eavesdropper { return &eavesdropper{h, make(chan string, 100)} }

func (e *eavesdropper) Run(ctx context.Context, c remote.Command) error {
	c.Stdout = io.MultiWriter(c.Stdout, writing(func(p []byte) {
		for line := range strings.Lines(string(p)) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word != "beat" {
				e.heard <- word
			}
		}
	}))
	return e.Host.Run(ctx, c)
}

type writing func([]byte)

func (w writing) Write(p []byte) (int, error) { w(p); return len(p), nil }

// await returns when the host has said this, with whatever comes behind it.
func (e *eavesdropper) await(word string) {
	for <-e.heard != word {
	}
}

// heldBytes is how long the answer is that says who has the cluster.
const heldBytes = int64(len("held 1767225600\n"))

func wantBusy(t *testing.T, err error, words ...string) {
	t.Helper()
	if reason.ExitStatus(err) != 30 || len(reason.All(err)) != 1 {
		t.Fatalf("%v, want HOST_BUSY alone", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v: not a word of %q", err, word)
		}
	}
}

func TestLockingKeepsOthersOut(t *testing.T) {
	t.Setenv("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.1 22")
	f := newFleet(t, "a").quick()
	dir := f.machines["a"].Dir
	began := false
	err := f.Locked(t.Context(), []string{"a"}, "up  inventory.yaml\n", func(context.Context) error {
		began = true
		for path, want := range map[string]os.FileMode{dir: 0o700, dir + "/operator": 0o700, dir + "/operator/holder": 0o600, dir + "/operator/lock": 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
		err := f.another("other").quick().Locked(t.Context(), []string{"a"}, "reset", func(context.Context) error {
			t.Error("two hold the cluster")
			return nil
		})
		wantBusy(t, err, "me@here", "from 192.0.2.7", "since 20", "s ago", "`kgpu up inventory.yaml`")
		return nil
	})
	if err != nil || !began {
		t.Fatalf("%v, began: %v", err, began)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock left %s: %v", dir, err)
	}
	mine := errors.New("mine")
	if err := f.another("other").quick().Locked(t.Context(), []string{"a"}, "reset", func(context.Context) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the next one: %v", err)
	}
}

// What steps handed out may be secret: it is gone with the lock of a run that came to its end, and stays for one that did not.
func TestOutputsAreForgotten(t *testing.T) {
	f := newFleet(t, "a").quick()
	dir := f.machines["a"].Dir
	outputs := func() string {
		all, err := filepath.Glob(filepath.Join(dir, "run/*/events"))
		if err != nil || len(all) == 0 {
			t.Fatalf("%q, %v", all, err)
		}
		text := ""
		for _, file := range all {
			b, err := os.ReadFile(file)
			must(t, err)
			text += string(b)
		}
		return text
	}
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		r, err := f.Execute(ctx, graphOf(step("a", "token", "echo said; printf %s secret | output token")))
		if got := string(r.Outputs[ref("a", "token")]["token"]); got != "secret" {
			t.Errorf("the output is %q", got)
		}
		if !strings.Contains(outputs(), "\nO\t") {
			t.Error("there is no output to forget")
		}
		return err
	})
	must(t, err)
	if left := outputs(); !strings.Contains(left, "\nO\ttoken\ttoken\t--------\n") || !strings.Contains(left, "\tsaid\n") || !strings.HasSuffix(left, "E\t0\n") {
		t.Errorf("left are %q", left)
	}
}

// Of several that start at the same time one wins.
func TestLockingAtOnce(t *testing.T) {
	const all = 5
	f := newFleet(t, "a")
	errs := make(chan error, all)
	var started, ended sync.WaitGroup
	started.Add(all)
	for _, run := range []string{"r1", "r2", "r3", "r4", "r5"} {
		ended.Go(func() {
			mine := f.another(run).quick()
			started.Done()
			started.Wait()
			errs <- mine.Locked(t.Context(), []string{"a"}, "up", func(context.Context) error {
				for range all - 1 {
					wantBusy(t, <-errs, "you@there")
				}
				return nil
			})
		})
	}
	ended.Wait()
	if err := <-errs; err != nil || len(errs) > 0 {
		t.Errorf("the winner: %v, and %d more", err, len(errs))
	}
}

func TestLockingIsTakenAgain(t *testing.T) {
	f := newFleet(t, "a").quick()
	f.machines["a"].cutAfter = []int64{heldBytes}
	a := eavesdrop(f.Hosts["a"])
	f.Hosts["a"] = a
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		a.await("held")
		a.await("held")
		wantBusy(t, f.another("other").quick().Locked(t.Context(), []string{"a"}, "reset", nil), "me@here")
		return ctx.Err()
	})
	must(t, err)
}

// dying is a host that goes down: it ends a program, the second that holds the cluster, before it ends the connection.
type dying struct {
	Host
	holds int
}

func (d *dying) Run(ctx context.Context, c remote.Command) error {
	if c.Name == "lock" {
		if d.holds++; d.holds == 2 {
			return &remote.ExitError{Host: "a", Command: "lock", Status: 143}
		}
	}
	return d.Host.Run(ctx, c)
}

func TestLockingIsTakenAgainOfAHostThatGoesDown(t *testing.T) {
	f := newFleet(t, "a").quick()
	f.machines["a"].cutAfter = []int64{heldBytes}
	a := eavesdrop(&dying{Host: f.Hosts["a"]})
	f.Hosts["a"] = a
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		a.await("held")
		a.await("held")
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
	if waits := f.told(event.Wait); !slices.ContainsFunc(waits, func(w string) bool { return strings.Contains(w, "the next try is in") }) {
		t.Errorf("told %q", waits)
	}
}

// losesTheLock is a run on a and b that loses its connection to a while its first step is at work: nothing new begins
// when somebody has had the cluster meanwhile.
func (f *fleet) losesTheLock(t *testing.T, meanwhile func(), words ...string) {
	t.Helper()
	f.pipe(t, "go", "there")
	a := f.machines["a"]
	a.cutAfter = []int64{heldBytes}
	a.onLost = func() {
		f.read(t, "there") // one runs
		meanwhile()
	}
	var r *Result
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		var err error
		r, err = f.Execute(ctx, graphOf(step("b", "one", "echo >there; cat go"), step("a", "two", "touch two", ref("b", "one"))))
		return err
	})
	wantBusy(t, err, append(words, "nothing new is begun")...)
	f.outcomes(t, r, map[string]Outcome{"b one": Running, "a two": Pending})
}

// Who is faster while a connection is lost has the cluster: the run that lost it begins nothing any more.
func TestLockingIsLost(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	taken, free := make(chan struct{}), make(chan struct{})
	other := f.another("other").quick()
	var faster sync.WaitGroup
	f.losesTheLock(t, func() {
		faster.Go(func() {
			if err := other.Locked(t.Context(), []string{"a"}, "reset", func(context.Context) error {
				close(taken)
				<-free
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		<-taken
	}, "you@there", "`kgpu reset`")
	close(free)
	faster.Wait()
	f.open(t, "go").Close() // what runs goes on
}

// One who had the cluster while a connection was lost has changed it, also when he has come to his end since.
func TestLockingIsLostToOneWhoHasGone(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	f.losesTheLock(t, func() {
		if err := f.another("other").quick().Locked(t.Context(), []string{"a"}, "reset", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	}, "another run had the cluster meanwhile")
	f.open(t, "go").Close() // what runs goes on
}

// absent is a host that takes its time to come back.
type absent struct {
	Host
	lost, back chan struct{}
}

func (a *absent) Reconnect(ctx context.Context) error {
	close(a.lost)
	<-a.back
	return a.Host.Reconnect(ctx)
}

// While it is not known who has the cluster nothing begins, on any host.
func TestNothingBeginsWithoutTheLock(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	f.machines["a"].cutAfter = []int64{heldBytes}
	a := &absent{f.Hosts["a"], make(chan struct{}), make(chan struct{})}
	f.Hosts["a"] = a
	var once sync.Once
	f.Engine.Events = event.SinkFunc(func(e event.Event) {
		f.Recorder.Emit(e)
		if e.Kind == event.Wait && e.Text == "for the lock on the cluster, which was lost with the connection to a" {
			once.Do(func() {
				if begun := f.told(event.StepStart); len(begun) > 0 {
					t.Errorf("begun are %q", begun)
				}
				close(a.back)
			})
		}
	})
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		<-a.lost
		r, err := f.Execute(ctx, graphOf(step("b", "one", "true")))
		f.outcomes(t, r, map[string]Outcome{"b one": Done})
		return err
	})
	must(t, err)
}

// forgetful is a host whose answers to what is said during a lock do not arrive until it is told to go on.
type forgetful struct {
	Host
	on atomic.Bool
}

func (h *forgetful) Run(ctx context.Context, c remote.Command) error {
	to := c.Stdout
	c.Stdout = writing(func(p []byte) {
		for line := range strings.Lines(string(p)) {
			if h.on.Load() || !strings.HasPrefix(line, "beat ") {
				_, _ = io.WriteString(to, line)
			}
		}
	})
	return h.Host.Run(ctx, c)
}

// A machine that slept does not know whether it has the cluster still: nothing begins before the control plane answers to what
// was said since.
func TestNothingBeginsOnAnOldAnswer(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	var awake atomic.Int64
	f.clock = func() time.Duration { return time.Duration(awake.Load()) }
	a := &forgetful{Host: f.Hosts["a"]}
	f.Hosts["a"] = a
	waited := false
	f.Engine.Events = event.SinkFunc(func(e event.Event) {
		f.Recorder.Emit(e)
		if e.Kind == event.Wait && strings.HasPrefix(e.Text, "for the lock on the cluster, which a has not confirmed") {
			if begun := f.told(event.StepStart); len(begun) > 1 {
				t.Errorf("begun are %q", begun)
			}
			waited = true
			a.on.Store(true)
		}
	})
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		if _, err := f.Execute(ctx, graphOf(step("b", "before", "true"))); err != nil {
			return err
		}
		awake.Store(int64(f.heartbeatTimeout()))
		r, err := f.Execute(ctx, graphOf(step("b", "after", "true")))
		f.outcomes(t, r, map[string]Outcome{"b after": Done})
		return err
	})
	if err != nil || !waited {
		t.Errorf("%v, waited: %v", err, waited)
	}
}

// A batch that was on its way while its run lost the cluster to another does not begin where that one is at work.
func TestFencedBatch(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	number := func(host string) int64 {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(f.machines[host].Dir, "fence"))
		must(t, err)
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		must(t, err)
		return n
	}
	f.Fence = 1 << 40
	var mine int64
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		_, err := f.Execute(ctx, graphOf(step("b", "one", "true")))
		mine = lockOf(ctx).fence()
		if got := number("b"); got != mine || mine != f.Fence+1 {
			t.Errorf("the host has noted %d, the lock's number is %d", got, mine)
		}
		return err
	})
	must(t, err)
	other := f.another("other").quick()
	other.Fence = mine
	if err := other.Locked(t.Context(), []string{"a"}, "reset", func(ctx context.Context) error {
		_, err := other.Execute(ctx, graphOf(step("b", "theirs", "true")))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := number("b"); got != mine+1 {
		t.Errorf("the host has noted %d after %d", got, mine)
	}
	late := &lock{engine: f.Engine, host: f.Hosts["a"], has: true, sent: f.awake(), number: mine}
	r, err := f.Execute(context.WithValue(t.Context(), lockKey{}, late), graphOf(step("b", "late", "touch late"), step("b", "later", "touch late")))
	wantBusy(t, err, "another run has taken the cluster since this one had it")
	f.outcomes(t, r, map[string]Outcome{"b late": Failed, "b later": Skipped})
	if _, err := os.Stat(filepath.Join(f.shared, "late")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has begun: %v", err)
	}
}

// A host that stays away ends the run that can no longer hold it.
func TestLockingWithoutItsHost(t *testing.T) {
	f := newFleet(t, "a").quick()
	f.machines["a"].cutAfter = []int64{heldBytes}
	f.machines["a"].refuse = &reason.Error{ID: reason.SSHUnreachable, Host: "a"}
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		<-ctx.Done()
		return &reason.Error{ID: reason.Cancelled}
	})
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.SSHLost || !errors.Is(err, remote.ErrLost) {
		t.Errorf("%v", err)
	}
}

func TestLockingOfAFullDisk(t *testing.T) {
	f := newFleet(t, "a").quick()
	must(t, os.WriteFile(f.machines["a"].Dir, nil, 0o600)) // in the directory's place
	err := f.Locked(t.Context(), []string{"a"}, "up", nil)
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.StepFailed || !strings.Contains(all[0].Stderr, f.machines["a"].Dir) {
		t.Errorf("%v", err)
	}
}

func TestLockingCancelled(t *testing.T) {
	f := newFleet(t, "a").quick()
	ctx, cancel := context.WithCancel(t.Context())
	err := f.Locked(ctx, []string{"a"}, "up", func(within context.Context) error {
		cancel()
		<-within.Done()
		if _, err := os.Stat(filepath.Join(f.machines["a"].Dir, "operator/holder")); err != nil {
			t.Errorf("the lock ended before the work did: %v", err)
		}
		return context.Cause(within)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := f.Locked(ctx, []string{"a"}, "up", nil); !errors.Is(err, &reason.Error{ID: reason.Cancelled}) {
		t.Errorf("of a run that was cancelled before: %v", err)
	}
}

// overSSH connects the fleet to a machine over real SSH; its control plane is called a.
func (f *fleet) overSSH(t *testing.T) (*runnertest.Host, *sshtest.Link, *eavesdropper) {
	t.Helper()
	machine := runnertest.NewHost(t)
	local := sshtest.Local(machine.Environ()...)
	server := sshtest.Listen(t, sshtest.Config{Exec: func(x *sshtest.Exec) int {
		x.Line = strings.ReplaceAll(x.Line, DefaultDir, machine.Dir)
		return local(x)
	}})
	link := sshtest.NewLink(t, server.Addr())
	d := remote.NewDialer(remote.Options{Run: f.Run, Events: event.SinkFunc(func(e event.Event) { f.Engine.Events.Emit(e) }), Keepalive: 50 * time.Millisecond, KeepaliveTimeout: 300 * time.Millisecond})
	t.Cleanup(func() { d.Close() })
	host, err := d.Dial(t.Context(), sshtest.At(server.Host(), link.Addr()))
	must(t, err)
	a := eavesdrop(named{host, "a"})
	f.Hosts["a"] = a
	return machine, link, a
}

// The lock outlives a silent cut of the link that is longer than the host's patience.
func TestLockingOverASilentCut(t *testing.T) {
	f := newFleet(t).quick()
	f.HeartbeatTimeout = 500 * time.Millisecond
	machine, link, a := f.overSSH(t)
	f.Engine.Events = event.SinkFunc(func(e event.Event) {
		f.Recorder.Emit(e)
		if e.Kind == event.Wait {
			link.Heal()
		}
	})
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		a.await("held")
		link.Cut()
		a.await("held")
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(machine.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock left %s: %v", machine.Dir, err)
	}
}

// A machine that slept sent nothing meanwhile: the host let go of the lock, which is taken again.
func TestLockingAfterASleep(t *testing.T) {
	f := newFleet(t)
	f.Heartbeat, f.HeartbeatTimeout = time.Hour, 500*time.Millisecond
	_, _, a := f.overSSH(t)
	err := f.Locked(t.Context(), []string{"a"}, "up", func(ctx context.Context) error {
		a.await("held")
		a.await("held")
		return ctx.Err()
	})
	if err != nil || len(f.told(event.Wait)) > 0 {
		t.Errorf("%v, waits %q", err, f.told(event.Wait))
	}
}

// Of three control planes each run takes two, whichever it reaches: they meet on one, and what the first began no other can
// begin behind its back.
func TestLockingAMajority(t *testing.T) {
	f := newFleet(t, "a", "b", "c").quick()
	err := f.Locked(t.Context(), []string{"a", "b"}, "up", func(ctx context.Context) error {
		for _, planes := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "b"}, {"a", "c"}} {
			err := f.another("other").quick().Locked(t.Context(), planes, "reset", func(context.Context) error {
				t.Errorf("another holds the cluster on %q", planes)
				return nil
			})
			wantBusy(t, err, "me@here", "`kgpu up`")
		}
		if h := lockOf(ctx); !h.isConfirmed() || h.outer == nil || h.fence() < h.outer.fence() {
			t.Errorf("numbers %d and %d", h.fence(), h.outer.fence())
		}
		result, err := f.Execute(ctx, graphOf(step("c", "one", "true")))
		if err == nil && result.Steps[0].Outcome != Done {
			t.Errorf("%+v", result.Steps)
		}
		return err
	})
	must(t, err)
	if err := f.another("other").quick().Locked(t.Context(), []string{"b", "c"}, "reset", func(context.Context) error { return nil }); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if err := f.Locked(t.Context(), nil, "up", func(context.Context) error { t.Error("done without a lock"); return nil }); err == nil {
		t.Error("no control plane, and no error")
	}
}

// Where one of its hosts is lost, a lock is not confirmed, and says which.
func TestLockOfWhichAPartIsLost(t *testing.T) {
	f := newFleet(t, "a", "b").quick()
	err := f.Locked(t.Context(), []string{"a", "b"}, "up", func(ctx context.Context) error {
		h := lockOf(ctx)
		var changed atomic.Bool
		h.tell(func() { changed.Store(true) })
		h.outer.set(func() { h.outer.has = false })
		if h.isConfirmed() || !changed.Load() || !strings.Contains(h.whyUnconfirmed(), "connection to a") {
			t.Errorf("confirmed: %t, heard of: %t, %s", h.isConfirmed(), changed.Load(), h.whyUnconfirmed())
		}
		return nil
	})
	must(t, err)
}
