package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// event is a line of `--output json`, as kgpu documents it.
type event struct {
	Time   time.Time `json:"time"`
	Run    string    `json:"run"`
	Host   string    `json:"host"`
	Step   string    `json:"step"`
	Event  string    `json:"event"`
	Reason string    `json:"reason"`
	Millis int64     `json:"ms"`
	Text   string    `json:"text"`
	Exit   *int      `json:"exit"`
}

func (e event) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", e.Time.Format("15:04:05.0"), e.Event, e.Host, e.Step, e.Reason, e.Text))
}

// session is one run of kgpu.
type session struct {
	args   []string
	cmd    *exec.Cmd
	stdout bytes.Buffer // all of it
	stderr bytes.Buffer
	ended  chan struct{}

	mu     sync.Mutex
	more   *sync.Cond // there are more events, or the end
	events []event
	closed bool
	next   int // the first event that await has not seen
	err    error
}

// limit bounds a run of kgpu, and of the lab: a hang ends the test, not the whole suite.
const limit = 25 * time.Minute

// start starts kgpu with this on its standard input.
func start(t *testing.T, stdin string, args ...string) *session {
	t.Helper()
	remember(args)
	return startProgram(t, kgpuProgram, stdin, args...)
}

func startProgram(t *testing.T, program, stdin string, args ...string) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	s := &session{args: args, cmd: exec.CommandContext(ctx, program, args...), ended: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	s.cmd.Stdin = strings.NewReader(stdin)
	s.cmd.Env = append(os.Environ(), "HOME="+operatorHome, "TMPDIR="+operatorHome)
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		s.read(bufio.NewReader(out))
		_ = s.cmd.Wait() // the exit status is in ProcessState
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Log(s.story())
		}
	})
	return s
}

func (s *session) read(out *bufio.Reader) {
	stream := slices.Contains(s.args, "json") && s.args[0] != "plan" // which prints one object
	for {
		line, err := out.ReadBytes('\n')
		s.mu.Lock()
		s.stdout.Write(line)
		if stream && len(line) > 0 {
			e, problem := decode(line)
			if problem != nil {
				s.err = errors.Join(s.err, fmt.Errorf("%w: %q", problem, line))
			}
			s.events = append(s.events, e)
		}
		s.closed = err != nil
		s.more.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// decode wants what `kgpu schema event` says.
func decode(line []byte) (event, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return event{}, err
	}
	var e event
	return e, errors.Join(eventSchema.Validate(value), json.Unmarshal(line, &e), e.check())
}

// eventSchema is kgpu's own, see runAll.
var eventSchema *jsonschema.Schema

// schemaOf is the schema that kgpu has published under this name.
func schemaOf(name string) (*jsonschema.Schema, error) {
	text, err := exec.Command(kgpuProgram, "schema", name).Output()
	if err != nil {
		return nil, fmt.Errorf("kgpu schema %s: %w", name, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, value); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// check is what a schema cannot say.
func (e event) check() error {
	switch {
	case e.Run == "" || e.Time.IsZero():
		return errors.New("no run, or no time")
	case e.Event == "command" && (e.Host == "" || e.Exit == nil && e.Reason == ""):
		return errors.New("a command without host, or without exit status or reason why there is none")
	}
	return nil
}

// await returns the first event, after those awaited before, that is what the test waits for.
func (s *session) await(t *testing.T, what string, is func(event) bool) event {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for s.next < len(s.events) {
			e := s.events[s.next]
			s.next++
			if is(e) {
				return e
			}
		}
		if s.closed {
			t.Fatalf("kgpu ended before %s", what)
		}
		s.more.Wait()
	}
}

// seen returns the events so far.
func (s *session) seen() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// kill is kill -9, and returns when the process is gone.
func (s *session) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// wait returns the exit status.
func (s *session) wait(t *testing.T) int {
	t.Helper()
	<-s.ended
	if s.err != nil {
		t.Errorf("the event stream is malformed: %v", s.err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// story is what kgpu said, for the log of a failed test, without the output of steps that ended well.
func (s *session) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kgpu %s: %s\n", strings.Join(s.args, " "), s.cmd.ProcessState)
	if len(s.events) == 0 {
		b.Write(s.stdout.Bytes())
	}
	well := map[[2]string]bool{} // host and step
	for _, e := range s.of("step.done") {
		well[[2]string{e.Host, e.Step}] = true
	}
	for _, e := range s.events {
		if e.Event == "step.skip" && e.Reason == "satisfied" || e.Event == "log" && well[[2]string{e.Host, e.Step}] {
			continue
		}
		fmt.Fprintln(&b, e)
	}
	fmt.Fprintf(&b, "standard error:\n%s", s.stderr.String())
	return b.String()
}

// of returns the events of a kind.
func (s *session) of(kind string) []event {
	var out []event
	for _, e := range s.events {
		if e.Event == kind {
			out = append(out, e)
		}
	}
	return out
}

// perHost counts the events of a kind by host.
func (s *session) perHost(kind string) map[string]int {
	count := map[string]int{}
	for _, e := range s.of(kind) {
		count[e.Host]++
	}
	return count
}

// kgpu runs kgpu to its end and wants this exit status.
func kgpu(t *testing.T, want int, args ...string) *session {
	t.Helper()
	s := start(t, "", args...)
	if got := s.wait(t); got != want {
		t.Fatalf("kgpu %s: exit status %d, want %d", strings.Join(args, " "), got, want)
	}
	return s
}
