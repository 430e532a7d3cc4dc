package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/network"
	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/prepare"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// These tests boot real hosts, so they need root. They use labs and a state
// folder of their own and run beside any other lab of the machine.

var program string // the lab's program, built for the tests

func TestMain(m *testing.M) {
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("the lab's tests boot hosts and need root")
	}
	dir, err := os.MkdirTemp("", "kgpu-lab-test-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "lab")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "..")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 0, err
	}
	if err := os.Setenv("KGPU_LAB_STATE", filepath.Join(dir, "state")); err != nil {
		return 0, err
	}
	p, err := place.New("")
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(p.Base("trixie") + ".stamp"); err != nil {
		if err := prepare.Run(context.Background(), prepare.Options{Place: p, Out: os.Stderr}); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// testLab is a lab that the test destroys at its end.
type testLab struct {
	place.Place
	t *testing.T
}

func newLab(t *testing.T, name string) testLab {
	t.Helper()
	p, err := place.New(name)
	if err != nil {
		t.Fatal(err)
	}
	l := testLab{p, t}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(p.State, "hosts", "*", "console.log"))
			for _, path := range append(logs, filepath.Join(p.State, "internet.log")) {
				b, _ := os.ReadFile(path)
				t.Logf("%s:\n%s", path, b)
			}
		}
		bridge := l.bridge()
		l.must("destroy")
		l.nothingLeft(bridge)
	})
	return l
}

func (l testLab) command(args ...string) *exec.Cmd {
	return exec.Command(program, append([]string{"--name", l.Name}, args...)...)
}

// run runs a verb and returns what it printed and its exit status.
func (l testLab) run(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	cmd := l.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("lab %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (l testLab) must(args ...string) string {
	l.t.Helper()
	out, errs, code := l.run(args...)
	if code != 0 {
		l.t.Fatalf("lab %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return strings.TrimSpace(out)
}

func (l testLab) fails(reason string, args ...string) {
	l.t.Helper()
	out, errs, code := l.run(args...)
	if code != 2 || !strings.Contains(errs, "["+reason+"]") {
		l.t.Errorf("lab %s: exit %d, want 2 and %s\n%s%s", strings.Join(args, " "), code, reason, out, errs)
	}
}

// state is the third column of a host's line in `status`.
func (l testLab) state(host string) string {
	l.t.Helper()
	for line := range strings.Lines(l.must("status")) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == host {
			return f[2]
		}
	}
	return "unknown"
}

func (l testLab) wantState(host, want string) {
	l.t.Helper()
	if got := l.state(host); got != want {
		l.t.Errorf("%s is %s, want %s", host, got, want)
	}
}

// bridge is the name of the lab's bridge, empty for a lab that was never made.
func (l testLab) bridge() string {
	l.t.Helper()
	record := struct{ Number int }{-1}
	if _, err := process.Load(filepath.Join(l.State, "lab.json"), &record); err != nil {
		l.t.Fatal(err)
	}
	if record.Number < 0 {
		return ""
	}
	return network.Network{Number: record.Number}.Bridge()
}

// nothingLeft looks for anything of the lab that outlived it.
func (l testLab) nothingLeft(bridge string) {
	l.t.Helper()
	if bridge == "" {
		return
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/kgpu-lab/" + bridge, "/sys/class/net/" + bridge, "/sys/class/net/" + bridge + "[-i]*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			l.t.Errorf("still there: %v", left)
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range loops {
		if file, _ := os.ReadFile(path); bytes.HasPrefix(file, []byte(l.State+"/")) {
			l.t.Errorf("a loop device is left: %s", file)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		l.t.Fatal(err)
	}
	if bytes.Contains(mounts, []byte(l.State)) {
		l.t.Errorf("mounts are left:\n%s", mounts)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, path := range processes {
		theirs, _ := os.ReadFile(path)
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		ours := bytes.Contains(env, []byte("KGPU_LAB_STATE="+l.Root()+"\x00")) && bytes.Contains(args, []byte("--name\x00"+l.Name+"\x00"))
		if ours || bytes.Contains(theirs, []byte(l.State+"/")) {
			l.t.Errorf("a process is left: %s: %q", path, args)
		}
	}
}
