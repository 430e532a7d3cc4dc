package runner_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kgpu.dev/kgpu/scripts/runner"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// holder is a lock.sh that runs.
type holder struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Reader
	pid   int
	ended chan error

	number int64 // of the lock
}

// held starts lock.sh on a host for a run, and wants it to have the lock; silence is in seconds.
func held(t *testing.T, h *runnertest.Host, run, silence string) *holder {
	t.Helper()
	x := asks(t, h, run, silence, "first")
	x.says("held")
	return x
}

// asks starts it for a run that knows this of its lock: first, again or reset.
func asks(t *testing.T, h *runnertest.Host, run, silence, how string) *holder {
	t.Helper()
	return knows(t, h, run, silence, how, 0)
}

// knows does so for a run that knows of this number.
func knows(t *testing.T, h *runnertest.Host, run, silence, how string, number int64) *holder {
	t.Helper()
	cmd := h.Shell("exec bash -s " + h.Dir + " " + silence)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, w := io.Pipe()
	cmd.Stdout = w
	must(t, cmd.Start())
	x := &holder{t: t, in: in, out: bufio.NewReader(out), pid: cmd.Process.Pid, ended: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		w.Close()
		x.ended <- err
	}()
	t.Cleanup(func() { in.Close() })
	if _, err := io.Copy(in, bytes.NewReader(append(bytes.Clone(runner.Lock), fmt.Sprintf("%s\nme@here\nup x.yaml\n%s\n%d\n", run, how, number)...))); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *holder) says(want string) {
	x.t.Helper()
	got, err := x.out.ReadString('\n')
	if word, number, found := strings.Cut(strings.TrimSpace(got), " "); want == "held" && word == want && found {
		x.number, err = strconv.ParseInt(number, 10, 64)
		got = word + "\n"
	}
	if got != want+"\n" || err != nil {
		x.t.Fatalf("lock.sh said %q, %v; want %q", got, err, want)
	}
}

func (x *holder) ends() {
	x.t.Helper()
	_, _ = io.Copy(io.Discard, x.out)
	if err := <-x.ended; err != nil {
		x.t.Fatal(err)
	}
}

// over says that the run needs the lock no more.
func (x *holder) over() {
	x.t.Helper()
	if _, err := io.WriteString(x.in, "over\n"); err != nil {
		x.t.Fatal(err)
	}
	x.ends()
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func TestLockEndsWithItsInput(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := held(t, h, "r1", "600")
	b := asks(t, h, "r2", "600", "first")
	b.says("busy")
	b.says("who=me@here")
	b.ends()
	a.in.Close()
	a.ends()
	wantGone(t, filepath.Join(h.Dir, "operator/lock"))
	c := held(t, h, "r3", "600")
	c.over()
	wantGone(t, h.Dir)
}

// Nothing closes the input of a lock whose link was cut.
func TestLockEndsInSilence(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := held(t, h, "r1", "0.3")
	a.ends()
	wantGone(t, filepath.Join(h.Dir, "operator/lock"))
}

// The run that lost its connection waits for the lock that this connection still has.
func TestLockAfterItself(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := held(t, h, "r1", "2")
	b := asks(t, h, "r1", "600", "again")
	b.says("held")
	a.ends()
	if got := read(t, h.Dir, "operator/holder"); !strings.Contains(got, "run=r1\n") {
		t.Errorf("the holder is %q", got)
	}
}

// What a lock left that was killed is in nobody's way.
func TestLockAfterAKill(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := held(t, h, "r1", "600")
	must(t, syscall.Kill(a.pid, syscall.SIGKILL))
	<-a.ended
	read(t, h.Dir, "operator/holder")
	b := held(t, h, "r2", "600")
	if got := read(t, h.Dir, "operator/holder"); !strings.Contains(got, "run=r2\n") {
		t.Errorf("the holder is %q", got)
	}
	b.over()
	wantGone(t, h.Dir)
}

// A run that was cut off may have the cluster again, unless another had it meanwhile: also one that has come to its end, and
// one that was cut off itself.
func TestLockAgain(t *testing.T) {
	t.Parallel()
	over := func(x *holder) { x.over() }
	cut := func(x *holder) { x.in.Close(); x.ends() }
	for _, tc := range []struct {
		name, how string
		meanwhile func(*holder)
		reset     bool
		want      string
	}{
		{"nobody came", "again", nil, false, "held"},
		{"another came to its end", "again", over, false, "changed"},
		{"another was cut off too", "again", cut, false, "changed"},
		{"another was a reset", "again", over, true, "changed"},
		{"it is a reset itself", "reset", nil, true, "held"},
		{"another came to its end during a reset", "reset", over, false, "changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := runnertest.NewHost(t)
			write(t, filepath.Join(h.Dir, "run/r1-1/result"), "0\n")
			write(t, filepath.Join(h.Dir, "run/r1-1/events"), "E\t0\n")
			a := held(t, h, "r1", "600")
			cut(a)
			if tc.meanwhile != nil {
				b := held(t, h, "r2", "600")
				tc.meanwhile(b)
			}
			if tc.reset {
				must(t, os.RemoveAll(h.Dir))
			}
			c := asks(t, h, "r1", "600", tc.how)
			c.says(tc.want)
			if tc.want == "held" {
				c.over()
			} else {
				c.ends()
			}
			wantGone(t, filepath.Join(h.Dir, "operator"))
		})
	}
}

// What steps handed out goes with the lock; who still reads the events of a batch finds the rest where it was.
func TestLockForgetsOutputs(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	events := filepath.Join(h.Dir, "run/r1-1/events")
	write(t, filepath.Join(h.Dir, "run/r1-1/result"), "0\n")
	const before = "B\ta/b\t1\nL\ta/b\tO\tö %s \\n\nO\ta/b\ttoken\tc2VjcmV0\nD\ta/b\t0\t1\t\t\nE\t0\n"
	write(t, events, before)
	reading, err := os.Open(events)
	must(t, err)
	defer reading.Close()
	a := held(t, h, "r1", "600")
	a.over()
	got, err := io.ReadAll(reading)
	if want := strings.Replace(before, "c2VjcmV0", "--------", 1); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// A reset forgets everything but the lock it runs under, which takes the rest along.
func TestForgetUnderALock(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := held(t, h, "r1", "600")
	start(t, h, put(t, h, "b-1", 60, `: >"`+h.Dir+`/forget"`))
	left, err := filepath.Glob(h.Dir + "/*")
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "operator" {
		t.Errorf("left are %q, %v", left, err)
	}
	b := asks(t, h, "r2", "600", "first")
	b.says("busy")
	b.ends()
	a.over()
	wantGone(t, h.Dir)
}

func TestForgetALockThatNobodyHas(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	write(t, filepath.Join(h.Dir, "operator/lock"), "")
	write(t, filepath.Join(h.Dir, "operator/holder"), "who=me@here\n")
	start(t, h, put(t, h, "b-1", 60, `: >"`+h.Dir+`/forget"`))
	wantGone(t, h.Dir)
}

// What the run says is answered, so that it knows that it has the cluster.
func TestLockAnswers(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := held(t, h, "r1", "600")
	for _, line := range []string{"17", "18"} {
		if _, err := io.WriteString(a.in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		a.says("beat " + line)
	}
	a.over()
}

// Each lock has a number that is greater than all before it: also after a kill, a reset, and where a host knows a greater one.
func TestNumbersOfLocks(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	write(t, filepath.Join(h.Dir, "ledger/keep"), "")
	held := func(run, how string, known int64) *holder {
		t.Helper()
		x := knows(t, h, run, "600", how, known)
		x.says("held")
		if got, want := read(t, h.Dir, "fence"), fmt.Sprintln(x.number); got != want {
			t.Errorf("the host has noted %q of %q", got, want)
		}
		return x
	}
	wants := func(x *holder, number int64) {
		t.Helper()
		if x.number != number {
			t.Errorf("the number is %d, not %d", x.number, number)
		}
	}
	a := held("r1", "first", 0)
	if a.number < 1767225600 { // the first seconds of 2026
		t.Errorf("the first number is %d", a.number)
	}
	a.over()
	b := held("r2", "first", 0)
	wants(b, a.number+1)
	b.in.Close()
	b.ends()
	again := held("r2", "again", b.number)
	wants(again, b.number)
	must(t, syscall.Kill(again.pid, syscall.SIGKILL))
	<-again.ended
	c := held("r3", "first", 5*b.number)
	wants(c, 5*b.number+1)
	must(t, os.RemoveAll(h.Dir)) // and the connection is lost
	c.in.Close()
	c.ends()
	reset := held("r3", "reset", c.number)
	wants(reset, c.number)
	reset.over()
	wantGone(t, h.Dir)
}
