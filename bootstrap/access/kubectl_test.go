package access

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// person is somebody at a terminal of 100 columns.
func person(t *testing.T) (keyboard, screen, terminal *os.File) {
	t.Helper()
	master, slave, err := pty.Open()
	must(t, err)
	t.Cleanup(func() { master.Close(); slave.Close() })
	must(t, pty.Setsize(master, &pty.Winsize{Rows: 30, Cols: 100}))
	return master, master, slave
}

// screenUpTo is what is on the screen up to and with a line that ends with these words.
func screenUpTo(t *testing.T, screen *bufio.Reader, last string) string {
	t.Helper()
	var all strings.Builder
	for {
		line, err := screen.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			t.Fatalf("%v; on the screen is %q", err, all.String())
		}
		if strings.HasSuffix(strings.TrimRight(line, "\r\n"), last) {
			return all.String()
		}
	}
}

// Where kgpu has a terminal, and kubectl is to have one, kubectl on the control plane has it: its size, what is typed, its
// exit status. Whoever is not root goes through sudo.
func TestKubectlAtATerminal(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	must(t, err)
	t.Setenv("TERM", "xterm-of-the-test")
	for _, user := range []string{"root", "ubuntu"} {
		t.Run(user, func(t *testing.T) {
			h, o := newAPIHost(t)
			o.Inventory.Hosts[0].SSH.User = user
			h.program(t, "sudo", "echo \"sudo $1\"\nshift\nexec \"$@\"\n")
			h.program(t, "kubectl", `printf '<%s>' "$@"; echo; [[ -t 0 && -t 1 && -t 2 ]] && echo "$TERM of $(stty size)"; echo "home $HOME"; read -r line; echo "heard $line"; exit 9`)
			keyboard, screen, terminal := person(t)
			ended := make(chan error, 1)
			go func() {
				defer terminal.Close() // which ends what is on the screen
				ended <- Kubectl(t.Context(), o, KubectlOptions{SSH: ssh, Args: []string{"exec", "-it", "a b", "--", "$(id)"}, Stdin: terminal, Stdout: terminal, Stderr: terminal})
			}()
			on := bufio.NewReader(screen)
			said := screenUpTo(t, on, "home /proc/kgpu-no-home")
			for _, want := range []string{"<--kubeconfig></etc/kubernetes/admin.conf><exec><-it><a b><--><$(id)>\r\n", "xterm-of-the-test of 30 100\r\n"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q, want %q", said, want)
				}
			}
			if got, want := strings.Contains(said, "sudo --\r\n"), user != "root"; got != want {
				t.Errorf("through sudo: %t; %q", got, said)
			}
			if _, err := io.WriteString(keyboard, "typed\r"); err != nil {
				t.Fatal(err)
			}
			screenUpTo(t, on, "heard typed")
			var exit *ExitError
			if err := <-ended; !errors.As(err, &exit) || exit.Status != 9 {
				t.Error(err)
			}
		})
	}
}

// What kubectl prints there on kgpu's terminal cannot do anything to it, where kubectl has none itself; nor can it have one
// without ssh.
func TestKubectlWithoutATerminal(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	must(t, err)
	t.Run("none is wanted", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", `[[ -t 0 || -t 1 ]] && echo "a terminal"; printf 'a\e]0;evil\ab\n'`)
		_, screen, terminal := person(t)
		must(t, Kubectl(t.Context(), o, KubectlOptions{SSH: ssh, Args: []string{"logs", "pod", "--", "-t"}, Stdin: terminal, Stdout: terminal, Stderr: terminal}))
		if said := screenUpTo(t, bufio.NewReader(screen), "b"); said != "a]0;evilb\r\n" {
			t.Errorf("%q", said)
		}
	})
	t.Run("there is no ssh", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", "exit 0\n")
		_, _, terminal := person(t)
		must(t, Kubectl(t.Context(), o, KubectlOptions{Args: []string{"exec", "-it", "pod"}, Stdin: terminal, Stdout: terminal, Stderr: terminal}))
		if !strings.Contains(h.said(), "Install the OpenSSH client") {
			t.Errorf("said %s", h.said())
		}
	})
	t.Run("a pipe", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", `[[ -t 0 || -t 1 ]] && echo "a terminal"; printf '\e[1mx'`)
		_, _, terminal := person(t)
		var out bytes.Buffer
		err := Kubectl(t.Context(), o, KubectlOptions{SSH: ssh, Args: []string{"exec", "-it", "pod"}, Stdin: terminal, Stdout: &out, Stderr: terminal})
		if err != nil || out.String() != "\x1b[1mx" {
			t.Errorf("%q, %v", out.String(), err)
		}
	})
}

func TestWantsTerminal(t *testing.T) {
	for args, want := range map[string]bool{
		"exec -it pod -- bash": true, "exec -ti pod": true, "exec -t pod": true, "exec --stdin --tty pod": true, "run -i --tty=true x": true, "-n x edit cm y": true, "exec -itc main pod": true,
		"": false, "exec pod -- ls -t": false, "get pods": false, "logs --tail=5 x": false, "exec -i pod": false, "exec --tty=false pod": false, "get -o tty": false, "-n team get pods": false, "top nodes": false,
	} {
		if got := (KubectlOptions{Args: strings.Fields(args)}).wantsTerminal(); got != want {
			t.Errorf("%s: %t", args, got)
		}
	}
}

// What comes over SSH is cut anywhere, also within a character.
func TestWholeCharacters(t *testing.T) {
	const text = "50%|█████     | größe 日本 \U0001F600\n"
	for size := 1; size < 9; size++ {
		var out strings.Builder
		w := &whole{to: printable.Writer(&out)}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if _, err := w.Write(rest[:min(size, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != text {
			t.Errorf("in pieces of %d: %q", size, out.String())
		}
	}
	var out strings.Builder
	w := &whole{to: printable.Writer(&out)}
	for range 10 {
		_, _ = w.Write([]byte{0x80})
	}
	if got := strings.Count(out.String(), "\uFFFD"); got != 10 {
		t.Errorf("of bytes that are no characters: %q", out.String())
	}
}
