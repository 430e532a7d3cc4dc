package process

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// patience is how long a program that was told to end may go on.
const patience = 30 * time.Second

// Group is a program in a process group of its own, which is told to end with ctx: Ctrl-C reaches the caller alone, which
// then ends the program, and does not reach those that clean up.
func Group(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = patience
	return cmd
}
