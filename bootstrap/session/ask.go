package session

import (
	"bytes"
	"context"
	"errors"
	"io"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// Bounds limit the time and the size of a host's answer.
type Bounds = remote.Bounds

// Question is a script whose output is the answer. It changes nothing on the host.
type Question struct {
	Name   string
	Script []byte
	Bounds Bounds
	AsUser bool // run as the user who logs in, not as root
}

func (q Question) command() remote.Command {
	return remote.Command{Name: q.Name, Line: "bash -s", Root: !q.AsUser, Stdin: bytes.NewReader(q.Script)}
}

// Ask runs a question on a host and reconnects if the connection is lost.
func (s *Session) Ask(ctx context.Context, id string, q Question) (answer []byte, err error) {
	err = s.WithReconnect(ctx, id, func(h *remote.Host) (err error) {
		answer, err = h.Output(ctx, q.command(), q.Bounds)
		return err
	})
	return answer, err
}

// AskOnce runs a question over the existing connection.
func (s *Session) AskOnce(ctx context.Context, id string, q Question) ([]byte, error) {
	return s.Conn(id).Output(ctx, q.command(), q.Bounds)
}

// Listen is AskOnce for long answers, which it copies to a writer without bounds.
func (s *Session) Listen(ctx context.Context, id string, q Question, to io.Writer) error {
	command := q.command()
	command.Stdout = to
	return s.Conn(id).Run(ctx, command)
}

// UnknownKey is the unknown host key because of which no connection was made; nil if there was another reason.
func UnknownKey(e *reason.Error) *remote.UnknownKeyError {
	if e == nil {
		return nil
	}
	unknown, _ := errors.AsType[*remote.UnknownKeyError](e.Err)
	return unknown
}

// OtherUser is the user who may log in, as a host says that runs no commands for this one; empty if it names nobody.
func OtherUser(err error) string {
	if other, ok := errors.AsType[*remote.NotRunError](err); ok {
		return other.User
	}
	return ""
}
