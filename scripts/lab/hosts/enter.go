package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Ended is the exit status, not 0, of a command inside a host.
type Ended int

func (e Ended) Error() string { return fmt.Sprintf("the command ended with exit status %d", int(e)) }

// Exec runs a command as root inside a running host, as if typed at its
// console. An exit status that is not 0 is an Ended; a shell's, 128 and the
// signal's number, where a signal ended it.
//
// nsenter stops itself when the command is stopped, and a host that goes down
// stops all that runs in it before it kills that: nobody would reap the
// command then, and the host's process namespace, which waits for that, would
// never end. It is told to go on.
func (l *Lab) Exec(ctx context.Context, name string, command []string) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	b, err := h.needRunning()
	if err != nil {
		return err
	}
	group, err := h.group()
	if err != nil {
		return err
	}
	if err := group.AddBesideInit(os.Getpid()); err != nil {
		return h.fail("enter its control group", "LAB_EXEC", "", err)
	}
	if len(command) == 0 {
		command = []string{"bash", "-l"}
	}
	enter := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(b.Init.PID), "-m", "-u", "-i", "-n", "-p", "-C", "--"}, command...)...)
	enter.Env = []string{"PATH=" + defaultPath, "HOME=/root", "USER=root", "LANG=C.UTF-8", "TERM=" + os.Getenv("TERM")}
	enter.Stdin, enter.Stdout, enter.Stderr = os.Stdin, os.Stdout, os.Stderr
	enter.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := enter.Start(); errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the machine's package util-linux: %w", err)
	} else if err != nil {
		return h.fail("start nsenter", "LAB_EXEC", "", err)
	}
	defer context.AfterFunc(ctx, func() { _ = enter.Process.Signal(syscall.SIGTERM) })()
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(enter.Process.Pid, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return h.fail("wait for nsenter", "LAB_EXEC", "", err)
		case status.Stopped():
			_ = enter.Process.Signal(syscall.SIGCONT)
		case status.Signaled():
			return Ended(128 + int(status.Signal()))
		case status.ExitStatus() != 0:
			return Ended(status.ExitStatus())
		default:
			return nil
		}
	}
}

// SSH replaces this process by an ssh client that logs in to a host as ubuntu.
func (l *Lab) SSH(_ context.Context, name string, command []string) error {
	if _, err := l.Host(name); err != nil {
		return err
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return errors.Join(errors.New("the machine's package openssh-client"), err)
	}
	return syscall.Exec(ssh, append([]string{"ssh", "-F", l.SSHConfig(), name}, command...), os.Environ())
}
