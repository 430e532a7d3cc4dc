// Package runnertest is a machine for tests that run the real runner scripts: a temporary directory in the place of
// /var/lib/kgpu, and stand-ins for systemd-run and systemctl that give a unit a session of its own.
package runnertest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

//go:embed systemd-run.sh
var systemdRun []byte

//go:embed systemctl.sh
var systemctl []byte

// Host is one such machine.
type Host struct {
	Dir string // stands for /var/lib/kgpu

	bin, units string
}

// NewHost makes a machine; everything that still runs on it ends with the test.
func NewHost(t testing.TB) *Host {
	t.Helper()
	root := t.TempDir()
	h := &Host{Dir: filepath.Join(root, "kgpu"), bin: filepath.Join(root, "bin"), units: filepath.Join(root, "units")}
	for _, dir := range []string{h.bin, h.units} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"systemd-run": systemdRun, "systemctl": systemctl} {
		if err := os.WriteFile(filepath.Join(h.bin, name), content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(h.PowerOff)
	return h
}

// Shell is the command that root's shell on this machine would run for line.
func (h *Host) Shell(line string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", line)
	cmd.Env = append(os.Environ(), h.Environ()...)
	return cmd
}

// Environ is what root's environment on this machine has beyond the test's own.
func (h *Host) Environ() []string {
	return []string{"PATH=" + h.bin + ":" + os.Getenv("PATH"), "RUNNERTEST_UNITS=" + h.units}
}

// Stop lets the machine say that it goes down.
func (h *Host) Stop() error {
	return os.WriteFile(filepath.Join(h.units, "stopping"), nil, 0o600)
}

// PowerOff ends every unit at once, without warning. The machine is on again at once, too: new units can be started.
func (h *Host) PowerOff() {
	units, _ := os.ReadDir(h.units)
	sessions := make(map[string]bool, len(units))
	for _, u := range units {
		if pid, err := os.ReadFile(filepath.Join(h.units, u.Name())); err == nil {
			sessions[strings.TrimSpace(string(pid))] = true
		}
	}
	for again := true; again; {
		again = false
		for _, pid := range membersOf(sessions) {
			again = syscall.Kill(pid, syscall.SIGKILL) == nil || again
		}
	}
	for _, u := range units {
		_ = os.RemoveAll(filepath.Join(h.units, u.Name()))
	}
}

// membersOf lists the living processes of these sessions.
func membersOf(sessions map[string]bool) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (comm) state ppid pgrp session …; comm may hold anything
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 3 && fields[0] != "Z" && sessions[fields[3]] {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}
