// Package process identifies processes across the lab's commands. A process id
// alone may belong to a stranger by the time it is read back; together with the
// time of its start and the machine's boot it is unique.
package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Record identifies one process of this machine for good.
type Record struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after the machine's boot: field 22 of proc_pid_stat(5)
	Boot  string `json:"boot"`  // the machine's boot id
}

// MachineBoot is the id of the machine's present boot.
func MachineBoot() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// Of makes the record of the process that has this id now.
func Of(pid int) (Record, error) {
	boot, err := MachineBoot()
	if err != nil {
		return Record{}, err
	}
	start, _, err := stat(pid)
	return Record{PID: pid, Start: start, Boot: boot}, err
}

func stat(pid int) (start uint64, state byte, err error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, err
	}
	// The command's name is in brackets and may hold anything, brackets too.
	_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return start, fields[0][0], err
}

// Find returns the process when it still runs. Its handle is a pidfd: signals
// through it cannot reach a later process with the same id.
func (r Record) Find() (*os.Process, bool) {
	if r.PID <= 0 {
		return nil, false
	}
	p, err := os.FindProcess(r.PID)
	if err != nil {
		return nil, false
	}
	boot, err := MachineBoot()
	start, state, serr := stat(r.PID)
	if err != nil || serr != nil || boot != r.Boot || start != r.Start || state == 'Z' || state == 'X' {
		_ = p.Release()
		return nil, false
	}
	return p, true
}

// Alive says whether the process still runs.
func (r Record) Alive() bool {
	p, ok := r.Find()
	if ok {
		_ = p.Release()
	}
	return ok
}

// Signal sends sig; a process that is gone is no error.
func (r Record) Signal(sig os.Signal) error {
	p, ok := r.Find()
	if !ok {
		return nil
	}
	defer func() { _ = p.Release() }()
	if err := p.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// WaitGone waits until the process has ended and says whether it did within limit.
func (r Record) WaitGone(limit time.Duration) bool {
	return Poll(limit, func() bool { return !r.Alive() })
}

// Poll asks done about every 20 ms until it says yes or limit has passed.
func Poll(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Load reads the JSON file at path into v and says whether there was one.
func Load(path string, v any) (bool, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// Save writes v as JSON to path, whole or not at all.
func Save(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteFile(path, append(b, '\n'), 0o644)
}

// WriteFile replaces the file at path, whole or not at all.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
