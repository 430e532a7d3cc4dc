package session

import (
	"bytes"
	"context"
	"errors"
	"io"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// Bounds are what a host may take to answer.
type Bounds = remote.Bounds

// Question is a script for a host that changes nothing there: what it prints is the answer.
type Question struct {
	Name   string
	Script []byte
	Bounds Bounds
	AsUser bool // who logs in, not root
}

func (q Question) command() remote.Command {
	return remote.Command{Name: q.Name, Line: "bash -s", Root: !q.AsUser, Stdin: bytes.NewReader(q.Script)}
}

// Ask asks a host, as often as it takes.
func (s *Session) Ask(ctx context.Context, id string, q Question) (answer []byte, err error) {
	err = s.Reconnecting(ctx, id, func(h *remote.Host) (err error) {
		answer, err = h.Output(ctx, q.command(), q.Bounds)
		return err
	})
	return answer, err
}

// AskOnce asks a host over the connection that there is.
func (s *Session) AskOnce(ctx context.Context, id string, q Question) ([]byte, error) {
	return s.Conn(id).Output(ctx, q.command(), q.Bounds)
}

// Listen is AskOnce for an answer that may be long: it has no bounds but those of to.
func (s *Session) Listen(ctx context.Context, id string, q Question, to io.Writer) error {
	command := q.command()
	command.Stdout = to
	return s.Conn(id).Run(ctx, command)
}

// UnknownKey is the key for which a host was not spoken to; nil: that was not the reason.
func UnknownKey(e *reason.Error) *remote.UnknownKeyError {
	if e == nil {
		return nil
	}
	unknown, _ := errors.AsType[*remote.UnknownKeyError](e.Err)
	return unknown
}

// OtherUser is who is to log in, as a host that runs no commands says; empty: it says nobody.
func OtherUser(err error) string {
	if other, ok := errors.AsType[*remote.NotRunError](err); ok {
		return other.User
	}
	return ""
}
