package runner_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kgpu.dev/kgpu/scripts/runner"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// holder is a hold.sh that runs.
type holder struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Reader
	pid   int
	ended chan error
}

// holds starts hold.sh on a host for a run; silence is in seconds.
func holds(t *testing.T, h *runnertest.Host, run, silence string) *holder {
	t.Helper()
	cmd := h.Shell("exec bash -s " + h.Dir + " " + silence)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &holder{t: t, in: in, out: bufio.NewReader(out), pid: cmd.Process.Pid, ended: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		w.Close()
		x.ended <- err
	}()
	t.Cleanup(func() { in.Close() })
	if _, err := io.Copy(in, bytes.NewReader(append(bytes.Clone(runner.Hold), run+"\nme@here\nup x.yaml\n"...))); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *holder) says(want string) {
	x.t.Helper()
	if got, err := x.out.ReadString('\n'); got != want+"\n" {
		x.t.Fatalf("hold.sh said %q, %v; want %q", got, err, want)
	}
}

func (x *holder) ends() {
	x.t.Helper()
	_, _ = io.Copy(io.Discard, x.out)
	if err := <-x.ended; err != nil {
		x.t.Fatal(err)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func TestHoldEndsWithItsInput(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := holds(t, h, "r1", "600")
	a.says("held")
	b := holds(t, h, "r2", "600")
	b.says("busy")
	b.says("who=me@here")
	b.ends()
	a.in.Close()
	a.ends()
	wantGone(t, h.Dir)
	c := holds(t, h, "r3", "600")
	c.says("held")
}

// Nothing closes the input of a hold whose link was cut.
func TestHoldEndsInSilence(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := holds(t, h, "r1", "0.3")
	a.says("held")
	a.ends()
	wantGone(t, h.Dir)
}

// The run that lost its connection waits for the hold that this connection still has.
func TestHoldAfterItself(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := holds(t, h, "r1", "2")
	a.says("held")
	b := holds(t, h, "r1", "600")
	b.says("held")
	a.ends()
	if got := read(t, h.Dir, "operator/holder"); !strings.Contains(got, "run=r1\n") {
		t.Errorf("the holder is %q", got)
	}
}

// What a hold left that was killed is in nobody's way.
func TestHoldAfterAKill(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := holds(t, h, "r1", "600")
	a.says("held")
	if err := syscall.Kill(a.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-a.ended
	read(t, h.Dir, "operator/holder")
	b := holds(t, h, "r2", "600")
	b.says("held")
	if got := read(t, h.Dir, "operator/holder"); !strings.Contains(got, "run=r2\n") {
		t.Errorf("the holder is %q", got)
	}
	b.in.Close()
	b.ends()
	wantGone(t, h.Dir)
}

// A reset forgets everything but the hold it runs under, which takes the rest along.
func TestForgetUnderAHold(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	a := holds(t, h, "r1", "600")
	a.says("held")
	start(t, h, put(t, h, "b-1", 60, `: >"`+h.Dir+`/forget"`))
	left, err := filepath.Glob(h.Dir + "/*")
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "operator" {
		t.Errorf("left are %q, %v", left, err)
	}
	b := holds(t, h, "r2", "600")
	b.says("busy")
	b.ends()
	a.in.Close()
	a.ends()
	wantGone(t, h.Dir)
}

func TestForgetAHoldThatNobodyHas(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	write(t, filepath.Join(h.Dir, "operator/lock"), "")
	write(t, filepath.Join(h.Dir, "operator/holder"), "who=me@here\n")
	start(t, h, put(t, h, "b-1", 60, `: >"`+h.Dir+`/forget"`))
	wantGone(t, h.Dir)
}
