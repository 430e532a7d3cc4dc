package runner_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/runner"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// packed is a batch as it is sent to a host.
func packed(t *testing.T, batch string, scripts ...string) []byte {
	t.Helper()
	from := runnertest.NewHost(t)
	put(t, from, batch, 60, scripts...)
	archive, err := exec.Command("tar", "-czf", "-", "-C", filepath.Join(from.Dir, "run"), batch).Output()
	must(t, err)
	return archive
}

// receive is the command that takes a batch on a host.
func receive(h *runnertest.Host, batch string, archive io.Reader) *exec.Cmd {
	cmd := h.Shell(`exec bash -c "$RECEIVE" kgpu "$0" ` + batch)
	cmd.Args = append(cmd.Args, h.Dir)
	cmd.Env = append(cmd.Env, "RECEIVE="+string(runner.Receive))
	cmd.Stdin = archive
	return cmd
}

// A batch that is sent again, because nobody heard that it had come, brings no secrets back.
func TestBatchThatComesTwice(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	archive := packed(t, "b-1", `cat "$KGPU_STEP/values/secret"`)
	first := timeless(output(t, receive(h, "b-1", bytes.NewReader(archive))))
	if want := "B\tstep/1\tT\nL\tstep/1\thunter2\nD\tstep/1\t0\tT\t\t\nE\t0\n"; first != want {
		t.Errorf("the events are\n%s", first)
	}
	must(t, os.Remove(filepath.Join(h.Dir, "run/b-1/events"))) // which have what the step printed
	write(t, filepath.Join(h.Dir, "run/b-1/events"), "E\t0\n")
	if again := output(t, receive(h, "b-1", bytes.NewReader(archive))); again != "E\t0\n" {
		t.Errorf("again, the events are\n%s", again)
	}
	if left := secretsIn(t, h); left != nil {
		t.Errorf("secrets are back in %q", left)
	}
}

// Of a batch that is cut off on its way nothing is left, and it can be sent again.
func TestBatchThatIsCutOff(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	archive := packed(t, "b-1", "echo well")
	if out, err := receive(h, "b-1", bytes.NewReader(archive[:len(archive)/2])).Output(); err == nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	if left, _ := os.ReadDir(filepath.Join(h.Dir, "run")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if events := output(t, receive(h, "b-1", bytes.NewReader(archive))); !strings.HasSuffix(events, "\nE\t0\n") {
		t.Errorf("the events are\n%s", events)
	}
}

// syncs is a sync that notes what it is asked for, while nothing of the batch has been started.
const syncs = `#!/bin/bash
for path in "$@"; do
    [[ -e $RUNNERTEST_DIR/run/b-1/started ]] || printf '%s\n' "$path" >>"$RUNNERTEST_SYNCED"
done
exec /bin/sync "$@"
`

// What a batch is made of, and the folders that lead to it, are on the disk before anything of it runs.
func TestBatchIsOnTheDiskFirst(t *testing.T) {
	t.Parallel()
	h := runnertest.NewHost(t)
	bin, noted := t.TempDir(), filepath.Join(t.TempDir(), "synced")
	must(t, os.WriteFile(filepath.Join(bin, "sync"), []byte(syncs), 0o700))
	cmd := receive(h, "b-1", bytes.NewReader(packed(t, "b-1", "echo well")))
	cmd.Env = append(cmd.Env, fmt.Sprintf("PATH=%s:%s/bin:%s", bin, filepath.Dir(h.Dir), os.Getenv("PATH")),
		"RUNNERTEST_DIR="+h.Dir, "RUNNERTEST_SYNCED="+noted)
	output(t, cmd)
	synced := strings.Fields(read(t, noted))
	for _, want := range []string{"b-1", "b-1/start.sh", "b-1/steps", "b-1/steps/001/script.sh", "b-1/steps/001/values/secret"} {
		if !slices.ContainsFunc(synced, func(path string) bool { return strings.HasSuffix(path, "/"+want) }) {
			t.Errorf("%s is not synced: %q", want, synced)
		}
	}
	for _, want := range []string{filepath.Join(h.Dir, "run"), h.Dir, filepath.Dir(h.Dir)} {
		if !slices.Contains(synced, want) {
			t.Errorf("%s is not synced: %q", want, synced)
		}
	}
}
