package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// startShellHost starts sshd with a user whose login shell this is, and who has these files at home.
func startShellHost(t *testing.T, shell, shadow string, files map[string]string, extra ...string) inventory.Host {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o644))
	}
	for name, line := range map[string]string{
		"passwd": testUser + ":x:60123:60123::" + home + ":" + shell + "\n",
		"group":  testUser + ":x:60123:\n",
		"shadow": testUser + ":*:" + shadow + "\n",
	} {
		data, err := os.ReadFile("/etc/" + name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), append(data, line...), 0o644)) // the user's programs read them, too
	}
	writeFile(t, filepath.Join(dir, "sudoers"), nil)
	for path := home; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		must(t, os.Chmod(path, 0o755))
	}
	s := startSSHDIn(t, []string{"unshare", "--mount", "sh", "-c", privateAccounts, "sh", dir}, extra...)
	in := s.host
	in.SSH.User, in.SSH.Key = testUser, filepath.Join(dir, "id")
	key := sshtest.NewKey()
	key.Write(t, in.SSH.Key)
	writeFile(t, in.SSH.Key+"-cert.pub", publicLine(certify(t, s.authority, key.PublicKey(), ssh.UserCert, testUser)))
	return in
}

const wellShadow = "20000:0:99999:7:::"

// A host that runs something else than what it is told is told apart from a command that failed, with its own words.
func TestOpenSSHCommandRefused(t *testing.T) {
	const cloud = `ForceCommand echo 'Please login as the user "ubuntu" rather than the user "root".';echo;exit 142`
	banner := "printf '%s\\n' '*** Welcome ***' 'line 2' 'line 3' 'line 4' 'line 5' 'line 6' 'line 7' 'Your account is locked.'; exit 1"
	for _, tc := range []struct {
		name   string
		in     func(*testing.T) inventory.Host
		words  []string
		advice string
		user   string
	}{
		{"forced command of a cloud image", func(t *testing.T) inventory.Host { return startSSHD(t, cloud).host },
			[]string{`Please login as the user "ubuntu" rather than the user "root".`}, "ssh: {user: ubuntu}", "ubuntu"},
		{"of another cloud", func(t *testing.T) inventory.Host {
			return startSSHD(t, `ForceCommand echo 'Please login as the ec2-user user rather than root user.'`).host
		}, []string{"rather than root user."}, "ssh: {user: ec2-user}", "ec2-user"},
		{"escape sequences", func(t *testing.T) inventory.Host {
			return startSSHD(t, `ForceCommand printf '\033]0;x\007\033[31mno\033[0m entry\n\n'; exit 1`).host
		}, []string{"said: no entry"}, "ssh: {user: …}", ""},
		{"sftp only", func(t *testing.T) inventory.Host { return startSSHD(t, "ForceCommand internal-sftp").host },
			[]string{"This service allows sftp connections only."}, "ssh: {user: …}", ""},
		{"nothing but a failure", func(t *testing.T) inventory.Host { return startSSHD(t, "ForceCommand false").host },
			[]string{"said nothing"}, "ssh: {user: …}", ""},
		{"nothing at all", func(t *testing.T) inventory.Host { return startSSHD(t, "ForceCommand true").host },
			[]string{"said nothing"}, "ssh: {user: …}", ""},
		{"a long banner", func(t *testing.T) inventory.Host { return startSSHD(t, "ForceCommand "+banner).host },
			[]string{"*** Welcome ***", "…", "Your account is locked."}, "ssh: {user: …}", ""},
		{"nologin", func(t *testing.T) inventory.Host { return startShellHost(t, "/usr/sbin/nologin", wellShadow, nil) },
			[]string{"This account is currently not available."}, "ssh: {user: …}", ""},
		{"a shell that gives up", func(t *testing.T) inventory.Host {
			return startShellHost(t, "/bin/bash", wellShadow, map[string]string{".bashrc": "echo no shells today >&2; exit 3"})
		}, []string{"no shells today"}, "ssh: {user: …}", ""},
		{"password to be changed", func(t *testing.T) inventory.Host {
			return startShellHost(t, "/bin/bash", "0:0:99999:7:::", nil, "UsePAM yes")
		},
			[]string{"assword"}, "asks for a new password", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := dial(t, tc.in(t))
			_, err := h.Output(context.Background(), Command{Name: "facts", Line: "bash -s", Stdin: strings.NewReader("echo x\n"), Root: true}, upTo(1000))
			var e *reason.Error
			var cause *NotRunError
			if !errors.As(err, &e) || e.ID != reason.SSHCommandRefused || !errors.As(err, &cause) {
				t.Fatalf("%v", err)
			}
			for _, w := range tc.words {
				if !strings.Contains(e.Error(), w) {
					t.Errorf("%q is not in: %v", w, e)
				}
			}
			if strings.ContainsAny(e.Error(), "\x1b\x07\n") {
				t.Errorf("%q", e.Error())
			}
			if !strings.Contains(e.AdviceLine(), tc.advice) || cause.User != tc.user {
				t.Errorf("user %q, advice %q", cause.User, e.AdviceLine())
			}
			if _, err := h.ReadFile(context.Background(), "/etc/hostname", upTo(1000)); !errors.Is(err, &reason.Error{ID: reason.SSHCommandRefused}) {
				t.Errorf("over sftp: %v", err)
			}
		})
	}
}

// What start-up files say is no part of what commands say, whatever shell has them.
func TestOpenSSHNoisyShell(t *testing.T) {
	many := strings.Repeat("echo a line of a banner\n", 5000)
	for _, tc := range []struct{ name, shell, file, noise string }{
		{"window title", "/bin/bash", ".bashrc", `printf '\033]0;host\007'`},
		{"long banner", "/bin/bash", ".bashrc", many},
		{"stderr", "/bin/bash", ".bashrc", "echo not here >&2; printf nor >&2"},
		{"what it runs", "/bin/bash", ".bashrc", "exec 5>&1; BASH_XTRACEFD=5; set -x"},
		{"titles of commands", "/bin/bash", ".bashrc", `trap 'printf "\033]0;%s\007" "$BASH_COMMAND"' DEBUG`},
		{"for scripts", "/bin/bash", ".bashrc", `echo "echo noise" >"$HOME/env"; export BASH_ENV=$HOME/env ENV=$HOME/env`},
		{"csh", "/bin/csh", ".cshrc", `printf '\033]0;host\007'`},
		{"fish", "/usr/bin/fish", ".config/fish/config.fish", `printf '\033]0;host\007'`},
		{"zsh", "/bin/zsh", ".zshenv", `printf '\033]0;host\007'`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := startShellHost(t, tc.shell, wellShadow, map[string]string{tc.file: tc.noise})
			h := dial(t, in)
			var stdout, stderr bytes.Buffer
			err := h.Run(context.Background(), Command{
				Name: "test", Line: "bash -s", Stdin: strings.NewReader("echo \"it's\"; echo that >&2; exit 7\n"), Stdout: &stdout, Stderr: &stderr,
			})
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Status != 7 || exit.Stderr != "that\n" || stdout.String() != "it's\n" || stderr.String() != "that\n" {
				t.Errorf("%v, stdout %q, stderr %q", err, stdout.String(), stderr.String())
			}
			got, err := h.sftpAsUser(t, "/etc/passwd")
			if err != nil || !strings.Contains(got, testUser) {
				t.Errorf("over sftp: %q, %v", got, err)
			}
		})
	}
	h := dial(t, startSSHD(t, "ForceCommand yes 'a menu'").host)
	_, err := h.Output(context.Background(), Command{Name: "facts", Line: "true"}, upTo(1000))
	if !errors.Is(err, &reason.Error{ID: reason.HostOutputTooLarge}) || !strings.Contains(err.Error(), "begins: a menu | a menu") {
		t.Errorf("noise without an end: %v", err)
	}
}

// sftpAsUser reads a file as the user who logs in, who has no sudo here.
func (h *Host) sftpAsUser(t *testing.T, name string) (string, error) {
	t.Helper()
	user := h.target.user
	h.target.user = defaultUser
	defer func() { h.target.user = user }()
	got, err := h.ReadFile(context.Background(), name, upTo(1<<20))
	return string(got), err
}

// The server decides how many sessions a connection may have; commands that run side by side work with any number.
func TestOpenSSHMaxSessions(t *testing.T) {
	for limit, most := range map[string]int{"1": 3, "2": 2, "10": 1} {
		t.Run(limit, func(t *testing.T) {
			s := startSSHD(t, "MaxSessions "+limit)
			h := dial(t, s.host)
			ctx := context.Background()
			for range 6 {
				if _, err := h.Output(ctx, Command{Name: "true", Line: "true"}, upTo(1)); err != nil {
					t.Fatal(err)
				}
			}
			if s.served() != 1 {
				t.Errorf("commands one after the other took %d connections", s.served())
			}
			ended := make(chan error, 2)
			var hold []io.Closer
			for range 2 {
				stdin, w := io.Pipe()
				hold = append(hold, w)
				began := make(chan struct{}, 10)
				go func() {
					ended <- h.Run(ctx, Command{Name: "long", Line: "echo began; exec cat", Stdin: stdin, Stdout: writerFunc(func([]byte) { began <- struct{}{} })})
				}()
				<-began
			}
			must(t, os.WriteFile(filepath.Join(s.dir, "file"), []byte("x"), 0o600))
			for range 6 {
				if got, err := h.ReadFile(ctx, filepath.Join(s.dir, "file"), upTo(10)); err != nil || string(got) != "x" {
					t.Errorf("%q, %v", got, err)
				}
			}
			for _, w := range hold {
				w.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if s.served() != most {
				t.Errorf("%d connections, want %d", s.served(), most)
			}
			c := long(t)
			c.Stdout = writerFunc(func([]byte) { s.kill() })
			if err := h.Run(ctx, c); !errors.Is(err, ErrLost) {
				t.Errorf("%v", err)
			}
			must(t, h.Reconnect(ctx))
			if err := h.Run(ctx, Command{Name: "true", Line: "true"}); err != nil {
				t.Error(err)
			}
		})
	}
	h := dial(t, startSSHD(t, "MaxSessions 0").host)
	err := h.Run(context.Background(), Command{Name: "true", Line: "true"})
	if !errors.Is(err, &reason.Error{ID: reason.SSHSessionRefused}) || !strings.Contains(err.Error(), "MaxSessions") {
		t.Errorf("no session at all: %v", err)
	}
}
