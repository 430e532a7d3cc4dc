package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Exec replaces this process by a command as root inside a running host, as
// if typed at its console. The exit status is the command's.
func (l *Lab) Exec(name string, command []string) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	b, err := h.needRunning()
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("the machine's package util-linux: %w", err)
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
	args := append([]string{"nsenter", "-t", strconv.Itoa(b.Init.PID), "-m", "-u", "-i", "-n", "-p", "-C", "--"}, command...)
	env := []string{"PATH=" + defaultPath, "HOME=/root", "USER=root", "LANG=C.UTF-8", "TERM=" + os.Getenv("TERM")}
	return syscall.Exec(nsenter, args, env)
}

// SSH replaces this process by an ssh client that logs in to a host as ubuntu.
func (l *Lab) SSH(name string, command []string) error {
	if _, err := l.Host(name); err != nil {
		return err
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return errors.Join(errors.New("the machine's package openssh-client"), err)
	}
	return syscall.Exec(ssh, append([]string{"ssh", "-F", l.SSHConfig(), name}, command...), os.Environ())
}
