package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// TestTrust: nobody is asked who is not at a terminal, sees nothing of the question, or whose terminal gives the hosts.
func TestTrust(t *testing.T) {
	terminal, tty, err := pty.Open()
	must(t, err)
	defer terminal.Close()
	defer tty.Close()
	for _, x := range []struct {
		line     string
		keyboard io.Reader
		errors   io.Writer
		want     bool
	}{
		{line: "init h", keyboard: tty, errors: tty, want: true},
		{line: "init h", keyboard: strings.NewReader("yes\n"), errors: tty},
		{line: "init h", keyboard: tty, errors: io.Discard},
		{line: "init --accept-new h", keyboard: tty, errors: tty},
		{line: "init --scan -", keyboard: tty, errors: tty},
		{line: "init --scan file", keyboard: tty, errors: tty, want: true},
		{line: "add-worker h", keyboard: tty, errors: tty, want: true},
		{line: "status", keyboard: tty, errors: tty, want: true},
		{line: "kubectl -- get nodes", keyboard: strings.NewReader(""), errors: tty},
	} {
		app := App("test", Group("", Init(), AddWorker(), Status(), Kubectl()))
		app.Reader, app.Writer, app.ErrWriter = x.keyboard, io.Discard, x.errors
		for _, command := range app.Commands {
			command.Action = func(c *cli.Context) error {
				if got := trust(c) != nil; got != x.want {
					t.Errorf("%s: %t", x.line, got)
				}
				return nil
			}
		}
		if err := app.Run(flagsFirst(app, append([]string{"kgpu"}, strings.Fields(x.line)...))); err != nil {
			t.Errorf("%s: %v", x.line, err)
		}
	}
}

func TestAskTrust(t *testing.T) {
	key := &remote.UnknownKeyError{Key: sshtest.NewKey().PublicKey(), Address: "[gpu\x1b[2J]:2222", KnownHosts: "/home/me/.ssh/known_hosts"}
	for typed, want := range map[string]struct {
		trusted bool
		again   int // the question
	}{
		"yes\n": {true, 0}, "y\n": {true, 0}, "YES\n": {true, 0}, "no\n": {false, 0}, "n\n": {false, 0}, "": {false, 0}, key.SHA256() + "\n": {true, 0},
		"what\nyes\n": {true, 1}, "\nno\n": {false, 1}, "SHA256:another\n": {false, 1}, "yes please\n?\ny\n": {true, 2},
	} {
		var said bytes.Buffer
		if got := askTrust(&said, strings.NewReader(typed), key); got != want.trusted {
			t.Errorf("%q: %t", typed, got)
		}
		text := said.String()
		contains(t, text,
			"The authenticity of host '[gpu", "ED25519 key fingerprint is "+key.SHA256()+".\n",
			"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub\n",
			"/home/me/.ssh/known_hosts", "Are you sure you want to continue connecting (yes/no/[fingerprint])? ")
		if again := strings.Count(text, "Please type 'yes', 'no' or the fingerprint: "); again != want.again || strings.Contains(text, "\x1b") {
			t.Errorf("%q: asked again %d times: %q", typed, again, text)
		}
	}
}

// A host that nobody knows is asked about beside the picture, and is known from then on.
func TestAskedAboutAStranger(t *testing.T) {
	for typed, known := range map[string]bool{"what\ny\n": true, "no\n": false} {
		path := filepath.Join(t.TempDir(), "known_hosts")
		s := perform(t, "stranger", "KNOWN_HOSTS="+path)
		s.await("(yes/no/[fingerprint])? ")
		s.types(typed)
		text, _ := s.end()
		data, err := os.ReadFile(path)
		if known {
			wantInOrder(t, text, "can't be established.", "Please type 'yes', 'no' or the fingerprint: ", "[HOST_FACTS_FAILED]")
			if err != nil || !strings.HasPrefix(string(data), "[127.0.0.1]:") {
				t.Errorf("known: %q, %v", data, err)
			}
			continue
		}
		wantInOrder(t, text, "can't be established.", "[SSH_HOST_KEY_UNKNOWN]")
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("known: %q, %v", data, err)
		}
	}
}
