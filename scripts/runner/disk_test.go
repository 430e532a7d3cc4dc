package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kgpu.dev/kgpu/scripts"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// smallDisk gives the machine a file system of a megabyte for /var/lib/kgpu.
func smallDisk(t *testing.T) *runnertest.Host {
	t.Helper()
	h := runnertest.NewHost(t)
	must(t, os.MkdirAll(h.Dir, 0o700))
	if err := syscall.Mount("tmpfs", h.Dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Fatalf("a small file system needs root: %v", err)
	}
	t.Cleanup(func() {
		h.PowerOff()
		if err := syscall.Unmount(h.Dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return h
}

// putWithLib is put for scripts that use the library, which knows what a full disk is.
func putWithLib(t *testing.T, h *runnertest.Host, batch string, scriptTexts ...string) string {
	t.Helper()
	dir := put(t, h, batch, 60, scriptTexts...)
	write(t, filepath.Join(dir, "lib.sh"), string(scripts.Lib()))
	return dir
}

// A step fills the disk that its own output, result and failure are on. It is not to be tried again, the batch ends as any
// other, and when there is room the next batch runs.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]string{
		"the step says so":         `dd if=/dev/zero of="$KGPU_STEP/../../../../big" bs=64k || exit 75`,
		"the step gives a reason":  `. "$KGPU_STEP/../../lib.sh"; head -c 9M /dev/zero >"$KGPU_STEP/../../../../big" || fail_transient REPO_UNREACHABLE 'E: write error'`,
		"the step cannot say much": `head -c 9M /dev/zero >"$KGPU_STEP/../../../../big" 2>/dev/null || exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			h := smallDisk(t)
			dir := putWithLib(t, h, "b-1", fill, "echo never")
			events := timeless(start(t, h, dir))
			lines := strings.Split(strings.TrimSpace(events), "\n")
			done, end := lines[len(lines)-2], lines[len(lines)-1]
			if !strings.HasPrefix(done, "D\tstep/1\t1\tT\tHOST_DISK_FULL\t"+h.Dir+" has ") || end != "E\t1" {
				t.Errorf("the events are\n%s", events)
			}
			if result := read(t, dir, "result"); result != "1\n" {
				t.Errorf("the result is %q", result)
			}
			if left := secretsIn(t, h); left != nil {
				t.Errorf("secrets are left in %q", left)
			}

			must(t, os.Remove(filepath.Join(h.Dir, "big")))
			if events := start(t, h, putWithLib(t, h, "b-2", "echo well")); !strings.HasSuffix(events, "\nE\t0\n") {
				t.Errorf("with room again:\n%s", events)
			}
		})
	}
}

// A step that ends well leaves no room behind: what comes after it is told all the same.
func TestDiskThatIsFullBetweenSteps(t *testing.T) {
	t.Parallel()
	h := smallDisk(t)
	dir := putWithLib(t, h, "b-1", `head -c 9M /dev/zero >"$KGPU_STEP/../../../../big" 2>/dev/null || true`, "true")
	events := timeless(start(t, h, dir))
	for _, want := range []string{"\nD\tstep/1\t0\tT\t\t\n", "\nB\tstep/2\tT\n", "\nE\t"} {
		if !strings.Contains(events, want) {
			t.Errorf("no %q in\n%s", want, events)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "reserve")); err == nil {
		t.Error("the reserve is still there")
	}
}
