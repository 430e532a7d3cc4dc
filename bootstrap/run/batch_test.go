package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// scripted is a host that answers every command as written down beforehand.
type scripted struct {
	answers  []answer
	commands []string
}

type answer struct {
	says string
	err  error
}

func (s *scripted) ID() string { return "h" }
func (s *scripted) Reconnect(context.Context) error {
	s.commands = append(s.commands, "reconnect")
	return nil
}

func (s *scripted) Run(_ context.Context, c remote.Command) error {
	words := strings.Fields(c.Line)
	said := c.Name
	if c.Name == "follow" {
		said += " " + words[len(words)-1]
	}
	s.commands = append(s.commands, said)
	if len(s.answers) == 0 {
		return errors.New("nothing more was expected")
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	_, _ = io.WriteString(c.Stdout, a.says)
	return a.err
}

func exits(status int, stderr string) error {
	return &remote.ExitError{Host: "h", Command: "batch", Status: status, Stderr: stderr}
}

func TestBatchRun(t *testing.T) {
	lost := fmt.Errorf("h: %w", remote.ErrLost)
	for name, c := range map[string]struct {
		answers  []answer
		end      ending
		id       reason.ID // of the error
		text     string    // in the error
		commands []string
		pauses   int
	}{
		"well": {
			answers:  []answer{{"B\ta\t0\nE\t0\n", nil}},
			end:      ended,
			commands: []string{"batch"},
		},
		"the end was heard, then the connection was lost": {
			answers:  []answer{{"E\t0\n", lost}},
			end:      ended,
			commands: []string{"batch"},
		},
		"follow.sh was killed": {
			answers:  []answer{{"B\ta\t0\nL\ta\tto", exits(143, "")}, {"L\ta\ttorn\nE\t0\n", nil}},
			end:      ended,
			commands: []string{"batch", "follow 6"},
		},
		"follow.sh is killed again and again": {
			answers:  []answer{{"B\ta\t0\n", exits(143, "")}, {"", exits(143, "")}, {"", exits(143, "")}, {"", exits(143, "who does that?")}},
			id:       reason.StepFailed,
			text:     "following the batch r-1: the remote command failed (exit status 143)",
			commands: []string{"batch", "follow 6", "follow 6", "follow 6"},
			pauses:   2,
		},
		"the host goes down while it is to start": {
			answers:  []answer{{"", exits(1, "")}, {"", exits(143, "")}, {"", lost}, {"", exits(127, "no such file")}, {"E\t0\n", nil}},
			end:      ended,
			commands: []string{"batch", "batch", "batch", "reconnect", "follow 0", "batch"},
			pauses:   2,
		},
		"lost again and again without news": {
			answers:  []answer{{"B\ta\t0\n", lost}, {"", lost}, {"", lost}, {"L\ta\tx\n", lost}, {"E\t0\n", nil}},
			end:      ended,
			commands: []string{"batch", "reconnect", "follow 6", "reconnect", "follow 6", "reconnect", "follow 6", "reconnect", "follow 12"},
			pauses:   2,
		},
		"lost before it arrived": {
			answers:  []answer{{"", lost}, {"", exits(127, "no such file")}, {"E\t0\n", nil}},
			end:      ended,
			commands: []string{"batch", "reconnect", "follow 0", "batch"},
		},
		"lost before it was started": {
			answers:  []answer{{"", lost}, {"N\n", nil}, {"E\t0\n", nil}},
			end:      ended,
			commands: []string{"batch", "reconnect", "follow 0", "batch"},
		},
		"lost, and its directory is gone": {
			answers:  []answer{{"B\ta\t0\n", lost}, {"", exits(127, "no such file")}},
			end:      gone,
			commands: []string{"batch", "reconnect", "follow 6"},
		},
		"the host went down": {
			answers:  []answer{{"B\ta\t0\n", lost}, {"L\ta\tto\nX\n", nil}},
			end:      gone,
			commands: []string{"batch", "reconnect", "follow 6"},
		},
		"the unit ended before it began": {
			answers:  []answer{{"N\n", nil}},
			id:       reason.StepFailed,
			text:     "`journalctl -u kgpu-r-1` on the host says why",
			commands: []string{"batch"},
		},
		"no word at all": {
			answers:  []answer{{"", nil}},
			id:       reason.StepFailed,
			text:     "the output ended before the batch did",
			commands: []string{"batch"},
		},
		"disk full": {
			answers:  []answer{{"", exits(2, "tar: r-1/by: Cannot write: No space left on device\n")}},
			id:       reason.HostDiskFull,
			text:     "no space left for /var/lib/kgpu",
			commands: []string{"batch"},
		},
		"no systemd": {
			answers:  []answer{{"", exits(1, "cannot start the unit: System has not been booted with systemd as init system")}},
			id:       reason.HostNoSystemd,
			commands: []string{"batch"},
		},
		"sudo refuses": {
			answers:  []answer{{"", &reason.Error{ID: reason.SudoRefused, Host: "h"}}},
			id:       reason.SudoRefused,
			commands: []string{"batch"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &scripted{answers: c.answers}
			pauses := 0
			e := &Engine{pause: func(int) time.Duration { pauses++; return 0 }}
			p := e.withDeadline(new(notes), "h", nil)
			b := &batch{engine: e, host: h, name: "r-1", reader: reader{listener: p}, time: p}
			end, err := b.run(t.Context(), []byte("bundle"))
			if end != c.end || !slices.Equal(h.commands, c.commands) || pauses != c.pauses {
				t.Errorf("ended %q after %q with %d pauses: %v", end, h.commands, pauses, err)
			}
			if c.id == "" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, &reason.Error{ID: c.id}) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// csh, which may be the shell of whoever logs in, takes no line end in quotes.
func TestReceivingIsOneLine(t *testing.T) {
	if line := receiveLine(DefaultDir, "b-1"); strings.ContainsAny(line, "\n'!") {
		t.Errorf("%q", line)
	}
}
