package run

import (
	"errors"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// exitNotFound is the shell's status for a script that is not there.
const exitNotFound = 127

func missing(err error) bool {
	var exit *remote.ExitError
	return errors.As(err, &exit) && exit.Status == exitNotFound
}

// startError says why a batch could not be started.
func (b *batch) startError(err error, end ending) error {
	const doing = "starting the steps"
	if end == never {
		return &reason.Error{ID: reason.StepFailed, Host: b.host.ID(), Doing: doing, Err: err,
			Detail: fmt.Sprintf("the unit kgpu-%s ended before its first step; `journalctl -u kgpu-%s` on the host says why", b.name, b.name)}
	}
	return b.engine.commandError(b.host.ID(), doing, err)
}

// commandError describes a remote command of the engine's own that failed.
func (e *Engine) commandError(host, doing string, err error) error {
	if known, ok := errors.AsType[*reason.Error](err); ok {
		return known
	}
	out := &reason.Error{ID: reason.StepFailed, Host: host, Doing: doing, Err: err}
	exit, ended := errors.AsType[*remote.ExitError](err)
	if !ended {
		if err == nil {
			out.Detail = "the output ended before the batch did"
		}
		return out
	}
	out.Exit, out.Stderr, out.Detail = &exit.Status, exit.Stderr, "the remote command failed"
	switch {
	case strings.Contains(out.Stderr, "No space left on device"):
		out.ID, out.Detail = reason.HostDiskFull, "no space left for "+e.dir()
	case strings.Contains(out.Stderr, "not been booted with systemd"), strings.Contains(out.Stderr, "systemd-run: command not found"):
		out.ID, out.Detail = reason.HostNoSystemd, "systemd-run does not work"
	}
	return out
}

// awayError says what it means that a host did not come back.
func awayError(host, detail string, err error) error {
	out := &reason.Error{ID: reason.SSHLost, Host: host, Doing: "reconnecting", Err: errors.Join(remote.ErrLost, err), Detail: detail + oneLine(err.Error())}
	for _, known := range reason.All(err) {
		if known.ID != reason.SSHLost && known.ID != reason.SSHUnreachable {
			out.ID = known.ID // another host key, say: more telling than that the connection was lost
			break
		}
	}
	return out
}
