package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

func TestRun(t *testing.T) {
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	for _, tc := range []struct {
		name, line, stdin string
		stdout, stderr    string
		status            int
	}{
		{name: "streams", line: "cat; echo problem >&2", stdin: "data\x00\xff\n", stdout: "data\x00\xff\n", stderr: "problem\n"},
		{name: "quotes", line: `printf '%s|' "a  b" 'it'"'"'s' \$HOME "\\"`, stdout: `a  b|it's|$HOME|\|`},
		{name: "several lines", line: "echo one\necho two", stdout: "one\ntwo\n"},
		{name: "no input is empty input", line: "cat"},
		{name: "status", line: "echo out; echo why >&2; exit 3", stdout: "out\n", stderr: "why\n", status: 3},
		{name: "unread input", line: "exec true", stdin: strings.Repeat("x", 8<<20)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := h.Run(context.Background(), Command{
				Name: "test", Line: tc.line, Root: true, Stdin: strings.NewReader(tc.stdin), Stdout: &stdout, Stderr: &stderr,
			})
			var exit *ExitError
			switch {
			case tc.status == 0 && err != nil:
				t.Error(err)
			case tc.status != 0 && (!errors.As(err, &exit) || exit.Status != tc.status):
				t.Errorf("%v, want exit status %d", err, tc.status)
			case tc.status != 0 && exit.Stderr != tc.stderr:
				t.Errorf("the error keeps %q", exit.Stderr)
			}
			if stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
		})
	}
}

func TestRunKeepsTheEndOfStderr(t *testing.T) {
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	err := h.Run(context.Background(), Command{Name: "loud", Line: "yes gpu | head -c 100000 >&2; echo >&2 the end; exit 1"})
	var exit *ExitError
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if len(exit.Stderr) != stderrKept || !strings.HasSuffix(exit.Stderr, "the end\n") {
		t.Errorf("%d bytes: %q", len(exit.Stderr), exit.Stderr)
	}
	if want := "127.0.0.1: loud: exit status 1: the end"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestRunMovesMuchData(t *testing.T) {
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	var out bytes.Buffer
	must(t, h.Run(context.Background(), Command{Name: "cat", Line: "cat", Stdin: bytes.NewReader(data), Stdout: &out}))
	if !bytes.Equal(out.Bytes(), data) {
		t.Errorf("%d bytes came back of %d, or others", out.Len(), len(data))
	}
}

// What a command says for its end is no news any more: one that is told to stop may call that a success.
func TestRunEndsWithItsContext(t *testing.T) {
	for _, status := range []int{sshtest.Vanish, 0, 143} {
		gone := make(chan struct{})
		server := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
			_, _ = io.WriteString(e.Stdout, "running\n")
			<-e.Gone
			close(gone)
			return status
		}})
		d, events := newDialer(t, Options{})
		h := dialWith(t, d, server.Host())
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		out := writerFunc(func([]byte) { cancel(why) })
		err := h.Run(ctx, Command{Name: "long", Line: "long", Stdout: out})
		if !errors.Is(err, why) {
			t.Errorf("status %d: %v", status, err)
		}
		<-gone // the command was told to stop
		if e := last(events); e.Kind != event.Command || e.Text != "long" || e.Reason != string(reason.Cancelled) || e.Exit != nil {
			t.Errorf("status %d: %+v", status, e)
		}
		// The connection is none the worse.
		if !h.current().alive() {
			t.Error("the connection died")
		}
	}
}

func TestRunOfACommandThatVanishes(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int { return sshtest.Vanish }})
	d, events := newDialer(t, Options{})
	h := dialWith(t, d, server.Host())
	err := h.Run(context.Background(), Command{Name: "reboot", Line: "reboot"})
	if !errors.Is(err, ErrLost) || !errors.Is(err, &reason.Error{ID: reason.SSHLost}) {
		t.Errorf("%v", err)
	}
	if e := last(events); e.Reason != string(reason.SSHLost) || e.Exit != nil {
		t.Errorf("%+v", e)
	}
	if err := h.Run(context.Background(), Command{Name: "more", Line: "true"}); !errors.Is(err, ErrLost) {
		t.Errorf("a command on a lost connection: %v", err)
	}
}

func TestRunWhileTheServerStops(t *testing.T) {
	running := make(chan struct{})
	server := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
		close(running)
		<-e.Gone
		return sshtest.Vanish
	}})
	h := dial(t, server.Host())
	go func() {
		<-running
		server.Stop()
	}()
	if err := h.Run(context.Background(), Command{Name: "long", Line: "long"}); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

func TestCommandEvents(t *testing.T) {
	d, events := newDialer(t, Options{})
	server := sshtest.Listen(t, sshtest.Config{})
	in := server.Host()
	in.Name = "gpu01"
	h := dialWith(t, d, in)
	_ = h.Run(context.Background(), Command{Name: "facts", Line: "exit 0"})
	_ = h.Run(context.Background(), Command{Name: "step", Line: "exit 7"})
	got := events.Events()
	if len(got) != 3 {
		t.Fatalf("%d events, want one per dial and command: %+v", len(got), got)
	}
	for i, want := range []event.Event{
		{Kind: event.Connect, Text: "root@" + server.Addr()},
		{Kind: event.Command, Text: "facts", Exit: new(int)},
		{Kind: event.Command, Text: "step", Exit: func() *int { n := 7; return &n }()},
	} {
		e := got[i]
		if e.Kind != want.Kind || e.Text != want.Text || e.Host != "gpu01" || e.Run != "run" || e.Reason != "" || e.Time.IsZero() {
			t.Errorf("event %d: %+v", i, e)
		}
		if (e.Exit == nil) != (want.Exit == nil) || e.Exit != nil && *e.Exit != *want.Exit {
			t.Errorf("event %d: exit %v", i, e.Exit)
		}
	}
}

// A caller that takes no more output does not make the command hang.
func TestRunWithAWriterThatFails(t *testing.T) {
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	for line, status := range map[string]int{"head -c 8000000 /dev/zero": 0, "head -c 8000000 /dev/zero; exit 3": 3} {
		err := h.Run(context.Background(), Command{Name: "loud", Line: line, Stdout: failing{}})
		var exit *ExitError
		switch {
		case status == 0 && !errors.Is(err, errFull):
			t.Errorf("%v", err)
		case status != 0 && (!errors.As(err, &exit) || exit.Status != status):
			t.Errorf("%v", err)
		}
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// A run that is over does not touch its writers: a caller may reuse the buffer.
func TestShutGate(t *testing.T) {
	var b bytes.Buffer
	g := newGate(&b, nil)
	_, _ = g.Write([]byte("before"))
	_ = g.shut()
	if _, err := g.Write([]byte("after")); !errors.Is(err, errShut) || b.String() != "before" {
		t.Errorf("%v, %q", err, b.String())
	}
}

func TestTail(t *testing.T) {
	for _, writes := range [][]string{{"abcdefgh"}, {"abc", "defgh"}, {"a", "b", "c", "defg", "h"}, {"abcdefg", "", "h"}} {
		tl := &tail{limit: 4}
		for _, w := range writes {
			_, _ = tl.Write([]byte(w))
		}
		if tl.String() != "efgh" {
			t.Errorf("%q: %q", writes, tl)
		}
	}
	tl := &tail{limit: 4}
	_, _ = tl.Write([]byte("aaé€"))
	if tl.String() != "€" {
		t.Errorf("half a rune is kept: %q", tl)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func last(r *event.Recorder) event.Event {
	all := r.Events()
	return all[len(all)-1]
}
