package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/process"
	"kgpu.dev/kgpu/scripts/lab/snapshot"
)

// Snapshot records a running host into the file at path, or into the lab's own
// collection when path is empty, and prints where.
func (l *Lab) Snapshot(ctx context.Context, name, path string) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	s, err := h.take(ctx)
	if err != nil {
		return err
	}
	if path == "" {
		if path, err = h.nextSnapshot(); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		return err
	}
	if err := process.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.Out, path)
	return err
}

// Diff prints what has changed on a host: from the snapshot in file a to that
// in file b. Without b it compares with the host as it is now, without a with
// the last snapshot. It fails with snapshot.ErrDifferent when there is anything.
func (l *Lab) Diff(ctx context.Context, name string, files []string) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		taken, err := h.snapshots()
		if err != nil {
			return err
		}
		if len(taken) == 0 {
			return h.fail("find a snapshot to compare with", "LAB_NO_SNAPSHOT", fmt.Sprintf("`lab snapshot %s` takes one.", name), nil)
		}
		files = taken[len(taken)-1:]
	}
	a, err := snapshot.Read(files[0])
	if err != nil {
		return err
	}
	var b snapshot.Snapshot
	if len(files) > 1 {
		b, err = snapshot.Read(files[1])
	} else {
		b, err = h.take(ctx)
	}
	if err != nil {
		return err
	}
	changes := snapshot.Diff(a, b)
	for _, c := range changes {
		if _, err := fmt.Fprintln(l.Out, c); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		return fmt.Errorf("%s: %d changes: %w", name, len(changes), snapshot.ErrDifferent)
	}
	return nil
}

func (h *Host) take(ctx context.Context) (snapshot.Snapshot, error) {
	b, err := h.needRunning()
	if err != nil {
		return nil, err
	}
	s, err := snapshot.Take(ctx, snapshot.Host{PID: b.Init.PID, Run: h.bash, Sums: h.path("sums")})
	if err != nil {
		return nil, h.fail("take a snapshot", "LAB_SNAPSHOT", "", err)
	}
	return s, nil
}

// bash runs a script as root inside the host.
func (h *Host) bash(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "--name", h.lab.Name, "exec", h.Name, "bash", "-s")
	cmd.Stdin = strings.NewReader(script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.Join(err, errors.New(lastLine(stderr.String())))
	}
	return stdout.String(), nil
}

func (h *Host) snapshots() ([]string, error) {
	return filepath.Glob(h.path("snapshots", "[0-9][0-9][0-9][0-9].txt"))
}

func (h *Host) nextSnapshot() (string, error) {
	if err := os.MkdirAll(h.path("snapshots"), 0o755); err != nil {
		return "", err
	}
	taken, err := h.snapshots()
	return h.path("snapshots", fmt.Sprintf("%04d.txt", len(taken)+1)), err
}
