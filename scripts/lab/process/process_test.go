package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestRecordKnowsItsProcessOnly(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Alive() {
		t.Error("a running process is not alive")
	}
	for name, other := range map[string]Record{
		"later start": {PID: r.PID, Start: r.Start + 1, Boot: r.Boot},
		"other boot":  {PID: r.PID, Start: r.Start, Boot: "before"},
		"no record":   {},
	} {
		if other.Alive() {
			t.Errorf("%s: alive", name)
		}
		if err := other.Signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !r.Alive() {
		t.Fatal("a signal reached a process that it was not for")
	}
	if err := r.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Nobody has waited for it: it is a zombie, and that is dead.
	if !r.WaitGone(time.Minute) {
		t.Error("a killed process is alive")
	}
}

func TestFilesAreReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	var v []int
	if found, err := Load(path, &v); found || err != nil {
		t.Errorf("a missing file: %v, %v", found, err)
	}
	for _, want := range [][]int{{1, 2, 3}, {4}} {
		if err := Save(path, want); err != nil {
			t.Fatal(err)
		}
		if found, err := Load(path, &v); !found || err != nil || v[0] != want[0] || len(v) != len(want) {
			t.Errorf("got %v, %v, %v", v, found, err)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, &v); err == nil {
		t.Error("a broken file was accepted")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSharedLocksKeepTheExclusiveOneOut(t *testing.T) {
	dir := t.TempDir()
	var unlocks []func()
	for range 2 {
		unlock, err := LockShared(dir)
		if err != nil {
			t.Fatal(err)
		}
		unlocks = append(unlocks, unlock)
	}
	if _, err := TryLock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("while shared: %v", err)
	}
	for _, unlock := range unlocks {
		unlock()
	}
	unlock, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
