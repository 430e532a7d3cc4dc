package access

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/scripts"
)

// What is asked about something in the cluster is answered in some kilobytes.
var askBounds = session.Bounds{Bytes: 4 << 20, Time: 3 * time.Minute}

// ask runs a script of scripts/access on the control plane, with this behind it, and returns what it prints between its first
// and its last line.
func (c *Cluster) ask(ctx context.Context, name, input string) (string, error) {
	cp := c.AdminPlane().ID()
	out, err := c.Ask(ctx, cp, session.Question{Name: name, Script: slices.Concat(scripts.Access(name), []byte(input)), Bounds: askBounds})
	if exit, ok := errors.AsType[*remote.ExitError](err); ok {
		if missing := c.clusterMissing(ctx); missing != nil {
			return "", missing
		}
		return "", &reason.Error{ID: reason.APIUnreachable, Host: cp, Doing: "asking the API server", Exit: &exit.Status, Stderr: exit.Stderr, Err: err}
	}
	if err != nil {
		return "", err
	}
	text, begins := strings.CutPrefix(string(out), "kgpu-"+name+"=1\n")
	text, ends := strings.CutSuffix(text, "end=1\n")
	if !begins || !ends {
		return "", c.misunderstood(name, out...)
	}
	return text, nil
}

// misunderstood is the error of an answer that is none; its end is the host's own word.
func (c *Cluster) misunderstood(what string, answer ...byte) error {
	return &reason.Error{
		ID: reason.FactsFailed, Host: c.AdminPlane().ID(), Doing: "asking about the " + what, Detail: "the host's answer is not one that kgpu understands",
		Stderr: string(answer[max(0, len(answer)-session.AnswerShown):]),
	}
}

// answers are the lines NAME=VALUE of a script of scripts/access.
func (c *Cluster) answers(ctx context.Context, name, input string) (map[string]string, error) {
	text, err := c.ask(ctx, name, input)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			return nil, c.misunderstood(name)
		}
		out[key] = value
	}
	if encoded, ok := out["token"]; ok {
		token, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !isToken(string(token)) {
			return nil, c.misunderstood(name)
		}
		out["token"] = string(token)
	}
	return out, nil
}
