package storm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHoldLock holds a lock as the fault does, and asks for it as apt does.
func TestHoldLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	script := strings.ReplaceAll(holdLock, "/var/lib/dpkg/lock-frontend", path)
	// The program says that it has the lock, and ends with its standard input.
	script = strings.ReplaceAll(script, "select(undef, undef, undef, $ARGV[0]);", `$| = 1; open(my $c, "<", "/proc/$$/comm"); print scalar <$c>; <STDIN>;`)
	cmd := exec.Command("perl", "-e", script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name := make([]byte, 64)
	n, err := stdout.Read(name)
	if err != nil || string(name[:n]) != "unattended-upgr\n" {
		t.Errorf("its name is %q, %v", name[:n], err)
	}
	ask := func() error {
		return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
	}
	if err := ask(); !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("the lock is not held: %v", err)
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if err := ask(); err != nil {
		t.Errorf("the lock is still held: %v", err)
	}
}
