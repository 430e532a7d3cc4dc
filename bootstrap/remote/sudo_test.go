package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// fakeSudo takes the options kgpu uses and asks for the password in $PASSWORD, if there is one, or else does what
// $REFUSE says. The texts are those of sudo 1.9 and sudo-rs 0.2.
const fakeSudo = `#!/bin/sh
ask=yes prompt='[sudo] password: '
while [ "$1" != -- ]; do
	case $1 in
	-n) ask=no ;;
	-S) ;;
	-p) shift; prompt=$1 ;;
	*) echo "usage: sudo" >&2; exit 1 ;;
	esac
	shift
done
shift
if [ "$LC_ALL" != C ]; then echo "sudo: a senha é necessária" >&2; exit 1; fi
if [ -n "$REFUSE" ]; then echo "$REFUSE" >&2; exit 1; fi
echo "sudo: unable to resolve host gpu01: Name or service not known" >&2
if [ -n "$PASSWORD" ]; then
	if [ $ask = no ]; then echo "sudo: a password is required" >&2; exit 1; fi
	echo "We trust you have received the usual lecture." >&2
	for try in 1 2 3; do
		printf %s "$prompt" >&2
		if ! IFS= read -r password; then echo >&2; echo "sudo: no password was provided" >&2; exit 1; fi
		echo >&2
		if [ "$password" = "$PASSWORD" ]; then exec "$@"; fi
		echo "Sorry, try again." >&2
	done
	echo "sudo: 3 incorrect password attempts" >&2
	exit 1
fi
exec "$@"
`

// sudoHost is a host where the user is not root and sudo is the fake one, unless sudo is "".
func sudoHost(t *testing.T, sudo string, password string, env ...string) (*Host, *sshtest.Server, func() string) {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range []string{"sh", "env", "cat", "wc", "head"} {
		path, err := exec.LookPath(tool)
		must(t, err)
		must(t, os.Symlink(path, filepath.Join(dir, tool)))
	}
	if sudo != "" {
		must(t, os.WriteFile(filepath.Join(dir, "sudo"), []byte(sudo), 0o700))
	}
	server := sshtest.Listen(t, sshtest.Config{Exec: sshtest.Local(append(env, "PATH="+dir)...)})
	in := server.Host()
	in.SSH.User = "ubuntu"
	if password != "" {
		in.SSH.SudoPassword = secretOf(t, "${SUDO}")
	}
	d, events := newDialer(t, Options{Secret: func(inventory.Secret) (string, error) { return password, nil }})
	h := dialWith(t, d, in)
	return h, server, func() string { return fmt.Sprintf("%+v %q", events.Events(), server.Lines()) }
}

const password = `pass'"word $x`

func TestSudo(t *testing.T) {
	for _, tc := range []struct {
		name, password string
		env            []string
	}{
		{"without a password", "", nil},
		{"with a password", password, []string{"PASSWORD=" + password}},
		{"with a password that sudo does not ask for", password, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, _, told := sudoHost(t, fakeSudo, tc.password, tc.env...)
			stdin := strings.Repeat("data\x00", 100_000)
			var stdout, stderr bytes.Buffer
			err := h.Run(context.Background(), Command{
				Name: "test", Line: `cat; echo "it's me" >&2; exit 3`, Root: true,
				Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
			})
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Status != 3 || exit.Stderr != "it's me\n" {
				t.Errorf("%#v", err)
			}
			if stdout.String() != stdin {
				t.Errorf("%d bytes of %d came through, or others", stdout.Len(), len(stdin))
			}
			if stderr.String() != "it's me\n" {
				t.Errorf("stderr has more than the command's: %q", stderr.String())
			}
			if s := told() + fmt.Sprint(err); strings.Contains(s, password) {
				t.Errorf("the password is in %s", s)
			}
		})
	}
}

func TestSudoIsNotUsedWithoutNeed(t *testing.T) {
	h, _, told := sudoHost(t, fakeSudo, "", "REFUSE=no")
	if err := h.Run(context.Background(), Command{Name: "plain", Line: "exit 0"}); err != nil {
		t.Error(err)
	}
	if strings.Contains(told(), "sudo") {
		t.Error(told())
	}
}

func TestSudoRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, sudo, password string
		env                  []string
		detail, advice       string
	}{
		{"wants a password", fakeSudo, "", []string{"PASSWORD=x"}, "sudo asks for a password", "sudoPassword: ${ENV}"},
		{"sudo-rs wants a password", fakeSudo, "", []string{"REFUSE=sudo: interactive authentication is required"}, "sudo asks for a password", "sudoPassword: ${ENV}"},
		{"wrong password", fakeSudo, password, []string{"PASSWORD=x"}, "sudo does not take the password", "what `sudoPassword` refers to"},
		{"not in sudoers", fakeSudo, "", []string{"REFUSE=ubuntu is not in the sudoers file."}, "the user may not use sudo", "adduser USER sudo"},
		{"sudo-rs: not in sudoers", fakeSudo, "", []string{"REFUSE=sudo: I'm sorry ubuntu. I'm afraid I can't do that"}, "the user may not use sudo", "adduser USER sudo"},
		{"may run other commands only", fakeSudo, "", []string{"REFUSE=Sorry, user ubuntu is not allowed to execute '/bin/sh' as root on gpu01."}, "the user may not use sudo", "every command"},
		{"wants a terminal", fakeSudo, "", []string{"REFUSE=sudo: sorry, you must have a tty to run sudo"}, "sudo wants a terminal", "requiretty"},
		{"not installed", "", "", nil, "there is no sudo on the host", "install sudo"},
		{"something else", fakeSudo, "", []string{"REFUSE=sudo: /etc/sudoers is world writable"}, "sudo did not run the command: sudo: /etc/sudoers is world writable", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, _, told := sudoHost(t, tc.sudo, tc.password, tc.env...)
			err := h.Run(context.Background(), Command{Name: "facts", Line: "exit 0", Root: true, Stdin: strings.NewReader("input")})
			var e *reason.Error
			if !errors.As(err, &e) || e.ID != reason.SudoRefused || e.Host != "127.0.0.1" || e.Doing != "running facts as root" || e.Exit == nil {
				t.Fatalf("%#v", err)
			}
			if !strings.Contains(e.Detail, tc.detail) || !strings.Contains(e.AdviceLine(), tc.advice) {
				t.Errorf("%q, advice %q", e.Detail, e.AdviceLine())
			}
			if s := told() + fmt.Sprintf("%+v", e); strings.Contains(s, password) {
				t.Errorf("the password is in %s", s)
			}
			if strings.Contains(e.Stderr, "kgpu-") {
				t.Errorf("the prompt is in stderr: %q", e.Stderr)
			}
		})
	}
}

func TestSudoThatWaitsForACode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		in := n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Exec: func(e *sshtest.Exec) int {
			_, _ = io.WriteString(e.Stderr, "Verification code: ")
			<-e.Gone
			return sshtest.Vanish
		}}))
		in.SSH.User, in.SSH.SudoPassword = "ubuntu", secretOf(t, "${SUDO}")
		h := dialWith(t, n.dialer(t, Options{Secret: func(inventory.Secret) (string, error) { return password, nil }}), in)
		start := time.Now()
		err := h.Run(context.Background(), Command{Name: "facts", Line: "true", Root: true})
		if e := wantReason(t, err, reason.SudoRefused); !strings.Contains(e.Detail, `"Verification code:"`) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took != sudoTimeout {
			t.Errorf("given up after %s", took)
		}
		if !h.current().alive() {
			t.Error("the connection died")
		}
	})
}

// However the bytes arrive, sudo's words and the command's are told apart.
func TestSudoStderrInPieces(t *testing.T) {
	for size := 1; size < 80; size++ {
		var stderr, stdin bytes.Buffer
		s := newSudo("secret", &stderr)
		written := make(chan struct{}, 4)
		s.attach(nil, &input{&stdin, written})
		feed := func(text string) {
			for i := 0; i < len(text); i += size {
				if _, err := s.Write([]byte(text[i:min(i+size, len(text))])); err != nil {
					t.Fatal(err)
				}
			}
		}
		feed("lecture\n" + string(s.prompt))
		<-written
		feed("\n" + string(s.mark) + "command\nand " + string(s.mark) + "again")
		if want := "command\nand " + string(s.mark) + "again"; stderr.String() != want || !s.isRoot() {
			t.Errorf("pieces of %d: stderr %q", size, stderr.String())
		}
		if stdin.String() != "secret\n" || s.said.String() != "lecture\n\n" {
			t.Errorf("pieces of %d: stdin %q, sudo said %q", size, stdin.String(), s.said.String())
		}
	}
}

// A command that runs already does not get the password, even if a prompt was seen.
func TestSudoPromptThatIsOver(t *testing.T) {
	s := newSudo("secret", io.Discard)
	s.attach(nil, &input{io.Discard, make(chan struct{}, 1)})
	if _, err := s.Write([]byte(string(s.prompt) + "\n" + string(s.mark))); err != nil {
		t.Fatal(err)
	}
	if !s.isRoot() || s.asked != 0 {
		t.Errorf("root %t, answered %d times", s.isRoot(), s.asked)
	}
}

type input struct {
	to      io.Writer
	written chan struct{}
}

func (i *input) Write(p []byte) (int, error) {
	n, err := i.to.Write(p)
	i.written <- struct{}{}
	return n, err
}

func (i *input) Close() error { return nil }
