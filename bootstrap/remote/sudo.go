package remote

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// sudoTimeout is how long sudo may take with a password before it is believed to wait for something else.
const sudoTimeout = time.Minute

// sudo sits between a command run through sudo and its stderr. It gives the password when, and only when, sudo asks for
// it with a prompt nobody else knows, so that it never ends up in the command's stdin; and it tells what sudo itself
// says from what the command says by a mark that is written as soon as there is a root shell.
type sudo struct {
	password string
	prompt   []byte
	mark     []byte
	stderr   io.Writer     // the command's
	root     chan struct{} // closed when the command runs

	mu      sync.Mutex
	stdin   io.WriteCloser
	session io.Closer
	asked   int
	gaveUp  bool
	pending []byte // not yet told apart
	said    tail   // by sudo
}

func newSudo(password string, stderr io.Writer) *sudo {
	nonce := rand.Text()
	return &sudo{
		password: password,
		prompt:   []byte("kgpu-password-" + nonce + ":"),
		mark:     []byte("kgpu-root-" + nonce + "\n"),
		stderr:   stderr,
		root:     make(chan struct{}),
		said:     tail{limit: stderrKept},
	}
}

// attach names the session that sudo runs in, before it starts.
func (s *sudo) attach(session io.Closer, stdin io.WriteCloser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.stdin = session, stdin
}

// line is what runs shell text as root. Sudo speaks English under LC_ALL=C.
func (s *sudo) line(text string) string {
	ask := "-n"
	if s.password != "" {
		ask = "-S -p " + string(s.prompt)
	}
	return fmt.Sprintf(`env LC_ALL=C sudo %s -- sh -c 'echo "$0" >&2; exec sh -c "$1"' %s %s`,
		ask, bytes.TrimSpace(s.mark), Quote(text))
}

// Quote makes text one word for the shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// ready is closed when the command's stdin may be sent: at once where sudo reads none of it.
func (s *sudo) ready() chan struct{} {
	if s.password == "" {
		return closedChan
	}
	return s.root
}

func (s *sudo) isRoot() bool {
	select {
	case <-s.root:
		return true
	default:
		return false
	}
}

// wasRefused reports whether sudo asked again after it got the password, or for something else.
func (s *sudo) wasRefused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked > 1 || s.gaveUp
}

// giveUp ends a sudo that waits for something kgpu does not know, such as a one-time code.
func (s *sudo) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = true
	s.hangUp()
}

// hangUp ends the session; both may have to wait for the connection.
func (s *sudo) hangUp() {
	stdin, session := s.stdin, s.session
	go func() {
		_ = stdin.Close()
		_ = session.Close()
	}()
}

// Write takes the session's stderr.
func (s *sudo) Write(p []byte) (int, error) {
	if s.isRoot() {
		return s.stderr.Write(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, p...)
	for {
		// The mark comes first: once the command runs, an answer to an earlier prompt would be its input.
		if before, after, ok := bytes.Cut(s.pending, s.mark); ok {
			_, _ = s.said.Write(before)
			s.pending = nil
			close(s.root)
			if len(after) > 0 {
				_, err := s.stderr.Write(after)
				return len(p), err
			}
			return len(p), nil
		}
		before, after, ok := bytes.Cut(s.pending, s.prompt)
		if !ok {
			break
		}
		_, _ = s.said.Write(before)
		s.pending = bytes.Clone(after)
		s.answer()
	}
	// All but what may be the beginning of a prompt or mark is sudo's.
	if n := len(s.pending) - len(s.prompt); n > 0 {
		_, _ = s.said.Write(s.pending[:n])
		s.pending = append(s.pending[:0], s.pending[n:]...)
	}
	return len(p), nil
}

// answer gives the password the first time; when sudo asks again it was wrong.
func (s *sudo) answer() {
	s.asked++
	if s.asked > 1 {
		s.hangUp()
		return
	}
	stdin := s.stdin
	go func() { _, _ = io.WriteString(stdin, s.password+"\n") }()
}

// refusal explains why the command did not run.
func (s *sudo) refusal(host, doing string, status int) error {
	s.mu.Lock()
	_, _ = s.said.Write(s.pending)
	s.pending = nil
	asked, gaveUp := s.asked, s.gaveUp
	s.mu.Unlock()
	said := strings.TrimSpace(s.said.String())
	e := &reason.Error{
		ID: reason.SudoRefused, Host: host, Doing: doing + " as root", Exit: &status, Stderr: said,
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	switch {
	case gaveUp:
		e.Detail = fmt.Sprintf("sudo waits for something other than a password: %q", printable.Short(lastLine(said), saidMost))
		e.Advice = "let the user run sudo without that (NOPASSWD in sudoers), or log in as root"
	case asked > 1 || has("incorrect password", "Maximum "):
		e.Detail = "sudo does not take the password"
		e.Advice = "check what `sudoPassword` refers to: it must be the user's own password on the host"
	// The wordings are those of sudo and, since Ubuntu 25.10, sudo-rs.
	case has("a password is required", "interactive authentication is required"):
		e.Detail = "sudo asks for a password"
		e.Advice = "name the password by reference (`sudoPassword: ${ENV}`), or let the user run sudo without one (NOPASSWD in sudoers); sudo asks users without any rights too"
	case has("not in the sudoers file", "is not allowed to", "may not run sudo", "I'm afraid I can't do that"):
		e.Detail = "the user may not use sudo for this"
		e.Advice = "allow the user every command in sudoers (on Ubuntu and Debian: `adduser USER sudo`), or log in as another one"
	case status == 127 && !has("sudo: "):
		e.Detail = "there is no sudo on the host"
		e.Advice = "install sudo there, or log in as root"
	case has("must have a tty"):
		e.Detail = "sudo wants a terminal"
		e.Advice = "remove `requiretty` from sudoers for this user"
	default:
		e.Detail = "sudo did not run the command"
		if said != "" {
			e.Detail += ": " + printable.Short(lastLine(said), saidMost)
		}
	}
	return e
}
