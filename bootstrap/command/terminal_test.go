package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// scene names what this test's program shall be instead of a test: a kgpu whose terminal is looked at.
const scene = "KGPU_TEST_SCENE"

// scenes are the stories that it tells.
var scenes = map[string]func(ctx context.Context, t *testing.T, file string) int{
	// An up whose first step does not end.
	"up": func(ctx context.Context, t *testing.T, file string) int {
		return Run(ctx, App("test", Group("", Up())), anyway("up", "--inventory", file))
	},
	// An up of hosts that never say who they are.
	"mute": func(ctx context.Context, t *testing.T, _ string) int {
		text := "cluster: mute\nhosts:\n"
		for i, role := range []string{"control-plane", "worker"} {
			address := fmt.Sprintf("127.0.0.%d", i+1)
			l, err := net.Listen("tcp", address+":0")
			must(t, err)
			go func() {
				conn, err := l.Accept()
				fmt.Fprintf(os.Stderr, "the %s: connection %v, %v\n", role, conn != nil, err)
			}()
			text += fmt.Sprintf("- {address: %s, name: %s, role: %s, ssh: {port: %d, user: root}}\n", address, role, role, l.Addr().(*net.TCPAddr).Port)
		}
		file := filepath.Join(t.TempDir(), "mute.yaml")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return Run(ctx, App("test", Group("", Up())), anyway("up", "--inventory", file))
	},
	// An up that meets a host whose key nobody knows, and then one that does not say what it is.
	"stranger": func(ctx context.Context, t *testing.T, _ string) int {
		server := sshtest.Listen(t, sshtest.Config{Exec: func(*sshtest.Exec) int { return 1 }})
		ssh := server.Host().SSH
		file := filepath.Join(t.TempDir(), "stranger.yaml")
		text := fmt.Sprintf("cluster: stranger\nhosts: [{address: 127.0.0.1, name: cp, role: control-plane, ssh: {port: %d, user: root, key: %q, knownHosts: %q}}]\n", ssh.Port, ssh.Key, os.Getenv("KNOWN_HOSTS"))
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return Run(ctx, App("test", Group("", Up())), anyway("up", "--inventory", file))
	},
	// A story that does not stop when it is told to.
	"stuck": func(ctx context.Context, _ *testing.T, file string) int {
		return Run(ctx, App("test", Group("", begun(func(bootstrap.Options, *terminal) error { select {} }))), []string{"kgpu", "up", "--inventory", file})
	},
	// One that asks while steps are at work.
	"question": func(ctx context.Context, _ *testing.T, file string) int {
		var c *cli.Context
		command := begun(func(_ bootstrap.Options, t *terminal) error {
			err := t.confirm(c, "This is a question.", "yes")
			t.Emit(event.Event{Time: time.Now(), Host: "cp", Step: "os/packages", Kind: event.StepDone})
			return err
		})
		command.Before = func(now *cli.Context) error { c = now; return nil }
		return Run(ctx, App("test", Group("", command)), []string{"kgpu", "up", "--inventory", file})
	},
	// One that looks at somebody else's run.
	"attach": func(ctx context.Context, _ *testing.T, file string) int {
		command := Attach()
		command.Action = func(c *cli.Context) error {
			return story(c, func(_ bootstrap.Options, t *terminal) error {
				t.Emit(event.Event{Time: time.Now(), Kind: event.Wait, Text: "for the end of a run: ada"})
				t.Emit(event.Event{Time: time.Now(), Host: "cp", Step: "os/packages", Kind: event.StepStart})
				<-c.Context.Done()
				return nil
			})
		}
		return Run(ctx, App("test", Group("", command)), []string{"kgpu", "attach", file})
	},
	"panic": func(ctx context.Context, _ *testing.T, file string) int {
		command := begun(func(bootstrap.Options, *terminal) error {
			go func() { panic("as it may happen anywhere") }()
			select {}
		})
		return Run(ctx, App("test", Group("", command)), []string{"kgpu", "up", "--inventory", file})
	},
}

// begun is an up that begins a step and then does something else.
func begun(tell func(bootstrap.Options, *terminal) error) *cli.Command {
	command := Up()
	command.Action = func(c *cli.Context) error {
		return story(c, func(o bootstrap.Options, t *terminal) error {
			t.Emit(event.Event{Time: time.Now(), Kind: event.Plan, Plan: []event.Planned{{Host: "cp", Step: "os/packages", Title: "install basic packages", Reason: "missing"}}})
			t.Emit(event.Event{Time: time.Now(), Host: "cp", Step: "os/packages", Kind: event.StepStart, Text: "install basic packages"})
			return tell(o, t)
		})
	}
	return command
}

// TestScene is no test: it is what the others start on a terminal.
func TestScene(t *testing.T) {
	play := scenes[os.Getenv(scene)]
	if play == nil {
		t.Skip("for the other tests")
	}
	host := &answering{facts: bareFacts}
	file := inventoryOf(t, host)
	host.begun = func(e *sshtest.Exec) {
		fmt.Fprint(e.Stdout, "B\tos/packages\t0\n")
		<-e.Gone
	}
	os.Exit(play(Interruptible(), t, file))
}

// stage is a terminal with a program on it.
type stage struct {
	t      *testing.T
	file   *os.File
	cmd    *exec.Cmd
	before *term.State

	mu    sync.Mutex
	more  *sync.Cond
	text  strings.Builder
	ended bool
	exit  error // of the program, when it has ended
}

func perform(t *testing.T, name string, environment ...string) *stage {
	t.Helper()
	s := &stage{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestScene$")}
	s.more = sync.NewCond(&s.mu)
	s.cmd.Env = append(os.Environ(), scene+"="+name, "TERM=xterm-256color", "NO_COLOR=", "TMPDIR="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	s.cmd.Env = append(s.cmd.Env, environment...)
	terminal, tty, err := pty.Open()
	if err == nil {
		err = pty.Setsize(terminal, &pty.Winsize{Cols: 80, Rows: 24})
	}
	must(t, err)
	s.file = terminal
	if s.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // it gets the signals that are typed
	must(t, s.cmd.Start())
	go s.listen()
	go func() {
		s.exit = s.cmd.Wait()
		_, _ = io.WriteString(tty, curtain)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		s.finish()
		_, _ = terminal.Close(), tty.Close()
	})
	return s
}

// curtain is what the terminal gets when the program has ended, behind all else.
const curtain = "\x1b[6n"

func (s *stage) listen() {
	buffer := make([]byte, 4096)
	for ended := false; !ended; {
		n, err := s.file.Read(buffer)
		s.mu.Lock()
		s.text.Write(buffer[:n])
		ended = err != nil || strings.HasSuffix(s.text.String(), curtain)
		s.ended = ended
		s.more.Broadcast()
		s.mu.Unlock()
	}
}

// finish waits for the end of the program.
func (s *stage) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended {
		s.more.Wait()
	}
}

// await waits for a text on the terminal.
func (s *stage) await(text string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), text) {
		if s.ended {
			s.t.Fatalf("no %q in %q", text, s.text.String())
		}
		s.more.Wait()
	}
}

// awaitMatch waits for a text that the pattern matches.
func (s *stage) awaitMatch(pattern string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for match := regexp.MustCompile(pattern); !match.MatchString(s.text.String()); {
		if s.ended {
			s.t.Fatalf("no %s in %q", pattern, s.text.String())
		}
		s.more.Wait()
	}
}

func (s *stage) types(text string) {
	if _, err := io.WriteString(s.file, text); err != nil {
		s.t.Error(err)
	}
}

// end waits for the program and returns what the terminal got and the exit status. The terminal is as it was.
func (s *stage) end() (string, int) {
	s.t.Helper()
	s.finish()
	var exit *exec.ExitError
	if s.exit != nil && !errors.As(s.exit, &exit) {
		s.t.Fatal(s.exit)
	}
	after, err := term.GetState(int(s.cmd.Stdin.(*os.File).Fd()))
	if err != nil || !reflect.DeepEqual(after, s.before) {
		s.t.Errorf("the terminal's settings are %v (%v), were %v", after, err, s.before)
	}
	text := strings.TrimSuffix(s.text.String(), curtain)
	if rest := strings.NewReplacer("\x1b[?2026h", "", "\x1b[?2026l", "").Replace(text); strings.Contains(rest, "\x1b[?") {
		s.t.Errorf("a mode of the terminal is changed: %q", rest)
	}
	if strings.LastIndex(text, "\x1b[?2026l") < strings.LastIndex(text, "\x1b[?2026h") {
		s.t.Errorf("the last frame is not ended: %q", text)
	}
	return text, s.cmd.ProcessState.ExitCode()
}

// wantInOrder fails the test unless the texts come one behind the other.
func wantInOrder(t *testing.T, text string, want ...string) {
	t.Helper()
	rest := text
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("no %q at its place in %q", w, text)
		}
		rest = after
	}
}

func TestCtrlCStops(t *testing.T) {
	s := perform(t, "up")
	s.await("install basic packages")
	s.types("\x03")
	text, status := s.end()
	wantInOrder(t, text, "stopping: nothing more is begun", "kgpu up ", "stopped; this carries on:", "kgpu up --inventory")
	if status != 130 {
		t.Errorf("exit status %d", status)
	}
}

// A terminal that goes away stops the story too, however often that is said.
func TestAHangupStops(t *testing.T) {
	// A program that is started with nohup ignores it, and so would what it starts; what catches it does not hand that on.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s := perform(t, "up")
	s.await("install basic packages")
	for range 2 {
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			break // it has ended
		}
	}
	text, status := s.end()
	wantInOrder(t, text, "stopping: nothing more is begun", "stopped; this carries on:", "kgpu up --inventory")
	if status != 130 {
		t.Errorf("exit status %d", status)
	}
}

// Before a step has begun it is no failure of the hosts either.
func TestCtrlCWhileItConnects(t *testing.T) {
	s := perform(t, "mute")
	for _, role := range []string{"control-plane", "worker"} {
		s.await("the " + role + ": connection true")
	}
	s.types("\x03")
	text, status := s.end()
	wantInOrder(t, text, "stopping: nothing more is begun", "stopped; this carries on:", "kgpu up --inventory", "error:", " control-plane, worker: interrupt signal received [CANCELLED]")
	if status != 130 || strings.Count(text, "error:") != 1 {
		t.Errorf("exit status %d, it said %q", status, text)
	}
}

// Who only looks on stops nothing.
func TestCtrlCLeavesAttach(t *testing.T) {
	s := perform(t, "attach")
	s.awaitMatch(`os/packages`)
	s.types("\x03")
	text, _ := s.end()
	wantInOrder(t, text, "waiting: for the end of a run: ada", "leaving: the run that was watched goes on")
	if strings.Contains(text, "stopping") {
		t.Errorf("something is stopped: %q", text)
	}
}

func TestCtrlCTwiceLeaves(t *testing.T) {
	s := perform(t, "stuck")
	s.awaitMatch(`0/1 [^\n]*[0-9]:[0-9][0-9][^\n]*install basic packages`) // it is at work
	s.types("\x03")
	s.await("stopping: nothing more is begun. Ctrl-C again leaves at once")
	s.types("\x03")
	text, status := s.end()
	wantInOrder(t, text, "0 of 1 step", "left: the steps at work go on on their hosts; kgpu attach shows them")
	if status != 130 {
		t.Errorf("exit status %d", status)
	}
	if end := text[strings.LastIndex(text, "left: the steps"):]; strings.Contains(end, "kgpu up") {
		t.Errorf("the picture comes behind the last line: %q", end)
	}
}

// A narrow terminal has no bar in the headline.
func TestThePictureFollowsTheTerminal(t *testing.T) {
	s := perform(t, "stuck")
	s.awaitMatch(`[0-9]:[0-9][0-9]  ─+  0 of 1 step`)
	must(t, pty.Setsize(s.file, &pty.Winsize{Cols: 45, Rows: 20}))
	s.awaitMatch(`[0-9]:[0-9][0-9]  0 of 1 step`)
	s.types("\x03")
	s.await("stopping")
	s.types("\x03")
	s.end()
}

// A question and its answer stay whole, and the picture comes back.
func TestAnswers(t *testing.T) {
	s := perform(t, "question")
	s.await("Type yes to go on: ")
	s.types("yes\n")
	text, status := s.end()
	wantInOrder(t, text, "This is a question.\r\nType yes to go on: ", "yes\r\n", "1 of 1 step", "done:", "k")
	if _, after, _ := strings.Cut(text, "Type yes to go on: "); strings.Contains(after[:strings.Index(after, "yes\r\n")], "kgpu up") {
		t.Errorf("there is a picture where the answer goes: %q", after)
	}
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestCtrlCIsNoAnswer(t *testing.T) {
	s := perform(t, "question")
	s.await("Type yes to go on: ")
	s.types("\x03")
	text, status := s.end()
	wantInOrder(t, text, "Type yes to go on: ", "\r\nstopping", "not confirmed, nothing was changed")
	if status != 3 {
		t.Errorf("exit status %d", status)
	}
}

func TestAPanicLeavesTheTerminalAsItWas(t *testing.T) {
	s := perform(t, "panic")
	if text, status := s.end(); status != 2 || !strings.Contains(text, "as it may happen anywhere") {
		t.Errorf("exit status %d, %q", status, text)
	}
}

// Where nothing is to be drawn, there are lines and no escape sequences.
func TestTerminalsWithLines(t *testing.T) {
	for _, environment := range []string{"TERM=dumb", "NO_COLOR=1"} {
		s := perform(t, "question", environment)
		s.await("Type yes to go on: ")
		s.types("yes\n")
		text, _ := s.end()
		if !strings.Contains(text, "cp  os/packages") || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %q", environment, text)
		}
	}
}
