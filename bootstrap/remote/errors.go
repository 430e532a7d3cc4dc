package remote

import (
	"errors"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// ErrLost says that the connection died; errors.Is finds it in errors with the reason SSH_LOST.
var ErrLost = errors.New("the connection was lost")

var (
	errSilent = errors.New("the host gave no sign of life")
	errClosed = errors.New("the connection was closed on this side")
	// errBusy: the server hung up before it said anything, as sshd does when too many log in at once.
	errBusy = errors.New("the SSH server hung up before it said anything")
	// errNotTaken: the server refuses to run a command for this user.
	errNotTaken = errors.New("the server took no command")
	// errNoAnswer: the time for connecting was over. errSlow: the same, and the server had taken the connection.
	errNoAnswer = errors.New("no answer")
	errSlow     = fmt.Errorf("the port is open; %w to the login", errNoAnswer)
)

// ExitError is a remote command that ran and failed.
type ExitError struct {
	Host    string
	Command string // its name
	Status  int    // exit status; 128 and more when a signal ended it
	Signal  string // such as TERM; empty when the command ended by itself
	Stderr  string // the end of its standard error
}

// Error prints one line: host, command, exit status and the last line of standard error.
func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != "" {
		how = "killed by SIG" + e.Signal
	}
	s := fmt.Sprintf("%s: %s: %s", e.Host, e.Command, how)
	if line := e.LastLine(); line != "" {
		s += ": " + line
	}
	return s
}

// LastLine is the last line of standard error.
func (e *ExitError) LastLine() string { return lastLine(e.Stderr) }

// inHost returns err as an error of the named host. A bastion's error is shared by the hosts behind it: it is copied.
func inHost(err error, host string) error {
	e, ok := err.(*reason.Error)
	if !ok {
		return fmt.Errorf("%s: %w", host, err)
	}
	own := *e
	own.Host = host
	return &own
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}
