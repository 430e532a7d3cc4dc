package sshtest

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"
)

// Exec is a command that a client asks for.
type Exec struct {
	User           string
	Line           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       *Terminal       // that the client wants; nil: none
	Gone           <-chan struct{} // closed when the client closed the channel, the connection ended, or SIGTERM or SIGKILL was sent
}

// Terminal is what a client asks for with a pty-req.
type Terminal struct {
	Name          string // for $TERM
	Columns, Rows uint32
}

// Handler runs a command and returns its exit status; Vanish, and the channel closes without one.
type Handler func(*Exec) int

// Vanish is the exit status of a command that went down with its machine.
const Vanish = -1

// Local runs commands with the local sh, with these variables (NAME=value) added to the environment. The command's
// process group is killed when the client is gone.
func Local(env ...string) Handler {
	return func(e *Exec) int {
		cmd := exec.Command("sh", "-c", e.Line)
		cmd.Env = append(os.Environ(), env...)
		begin := onPipes
		if e.Terminal != nil {
			begin = onTerminal
		}
		rest, err := begin(cmd, e)
		if err != nil {
			return 255
		}
		ended := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			select {
			case <-e.Gone:
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			case <-ended:
			}
		})
		err = cmd.Wait()
		close(ended)
		wg.Wait()
		rest()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return 0
		case errors.As(err, &exit) && exit.ExitCode() >= 0:
			return exit.ExitCode()
		default:
			return Vanish
		}
	}
}

// onPipes starts a command; rest ends what belongs to it, once the command has ended.
func onPipes(cmd *exec.Cmd, e *Exec) (rest func(), err error) {
	cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(stdin, e.Stdin)
		stdin.Close()
	}()
	return func() {}, nil
}

// onTerminal is onPipes with the terminal that the client wants.
func onTerminal(cmd *exec.Cmd, e *Exec) (rest func(), err error) {
	cmd.Env = append(cmd.Env, "TERM="+e.Terminal.Name)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(e.Terminal.Rows), Cols: uint16(e.Terminal.Columns)})
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(terminal, e.Stdin) }()
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		_, _ = io.Copy(e.Stdout, terminal) // until nobody has it open any more
	}()
	return func() { <-printed; terminal.Close() }, nil
}

// opened is a line that says first that it runs.
var opened = regexp.MustCompile(`(?s)^exec sh -c 'printf .*exec sh -c "\$1"' (\w+) '(.*)'$`)

// loginShell does what a login shell does with such a line, so that handlers get the command alone, and returns what the line says
// on stdout and stderr before.
func loginShell(line string) (command, mark string) {
	m := opened.FindStringSubmatch(line)
	if m == nil {
		return line, ""
	}
	return strings.ReplaceAll(m[2], `'\''`, "'"), "kgpu-" + m[1] + "\n"
}

func (s *Server) session(user string, nc ssh.NewChannel) {
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() { close(gone) })
	var wg sync.WaitGroup
	var terminal *Terminal
	for r := range requests {
		var text struct{ Text string }
		switch r.Type {
		case "pty-req":
			var want struct {
				Name                         string
				Columns, Rows, Width, Height uint32
				Modes                        string
			}
			if ssh.Unmarshal(r.Payload, &want) != nil {
				_ = r.Reply(false, nil)
				continue
			}
			terminal = &Terminal{want.Name, want.Columns, want.Rows}
			_ = r.Reply(true, nil)
		case "exec":
			if ssh.Unmarshal(r.Payload, &text) != nil {
				_ = r.Reply(false, nil)
				continue
			}
			line, mark := loginShell(text.Text)
			text.Text = line
			s.mu.Lock()
			s.lines = append(s.lines, text.Text)
			handler := s.config.Exec
			if s.forced != nil {
				handler, mark = s.forced, ""
			}
			s.mu.Unlock()
			_ = r.Reply(true, nil)
			wg.Go(func() {
				defer ch.Close()
				_, _ = io.WriteString(ch, mark)
				_, _ = io.WriteString(ch.Stderr(), mark)
				status := handler(&Exec{User: user, Line: text.Text, Stdin: ch, Stdout: ch, Stderr: ch.Stderr(), Terminal: terminal, Gone: gone})
				if status != Vanish {
					_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
				}
			})
		case "signal":
			if ssh.Unmarshal(r.Payload, &text) == nil && (text.Text == "TERM" || text.Text == "KILL") {
				leave()
			}
		default:
			_ = r.Reply(r.Type == "env", nil)
		}
	}
	leave()
	ch.Close()
	wg.Wait()
}

// forward is direct-tcpip: RFC 4254, 7.2.
func forward(nc ssh.NewChannel, config Config) {
	var to struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if config.NoTCP {
		_ = nc.Reject(ssh.Prohibited, "administratively prohibited")
		return
	}
	if err := ssh.Unmarshal(nc.ExtraData(), &to); err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	out, err := config.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer out.Close()
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	closed := make(chan struct{})
	wg.Go(func() {
		ssh.DiscardRequests(requests)
		close(closed)
	})
	wg.Go(func() {
		_, _ = io.Copy(out, ch) // what came before the channel was closed is passed on
		if w, ok := out.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
		}
		<-closed
		out.Close()
	})
	_, _ = io.Copy(ch, out)
	ch.Close()
	wg.Wait()
}
