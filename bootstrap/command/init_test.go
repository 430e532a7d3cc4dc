package command

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// typedInit runs kgpu init with an action in place of its own.
func typedInit(t *testing.T, stdin string, action func(*cli.Context) error, args ...string) error {
	t.Helper()
	app := App("test", Group("", Init()))
	app.Reader, app.Writer, app.ErrWriter = strings.NewReader(stdin), io.Discard, io.Discard
	app.Commands[0].Action = action
	return app.Run(flagsFirst(app, append([]string{"kgpu", "init"}, args...)))
}

// TestTargets takes hosts from the command line and from --scan, and names the line that is wrong.
func TestTargets(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("hosts", []byte("# the rack\n10.0.0.1\n\n  ubuntu@10.0.0.[2-3]:2222 # new\r\n10.0.0.9\n"), 0o600))
	must(t, os.WriteFile("bad", []byte("10.0.0.1\nno host\n"), 0o600))
	for _, name := range []string{"hosts.txt", "none"} {
		must(t, os.WriteFile(name, []byte("# none yet\n"), 0o600))
	}
	for line, want := range map[string]string{
		"10.0.0.9 gpu[1-2]":            "10.0.0.9 gpu1 gpu2",
		"--scan hosts":                 "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9",
		"10.0.0.9 --scan hosts":        "10.0.0.9 10.0.0.1 10.0.0.2 10.0.0.3",
		"--scan - 10.0.0.9":            "10.0.0.9 stdin1",
		"":                             "error which hosts?",
		"--scan bad":                   "error bad:2: ",
		"--scan nowhere":               "error nowhere",
		"10.0.0.2 --scan hosts":        "error named twice",
		"10.0.0.0":                     "10.0.0.0",
		"10.0.0.0/24":                  "error 10.0.0.[1-5]",
		"hosts.txt":                    "error kgpu init --scan hosts.txt",
		"--scan none":                  "error --scan none: no host is named there",
		"--cluster x --file - --scan=": "error --scan",
	} {
		var got []string
		err := typedInit(t, "stdin1\n", func(c *cli.Context) error {
			list, err := targets(c)
			for _, x := range list {
				got = append(got, x.Address)
			}
			return err
		}, strings.Fields(line)...)
		wrong, bad := strings.CutPrefix(want, "error ")
		var usage *reason.UsageError
		if bad && (!errors.As(err, &usage) || !strings.Contains(err.Error(), wrong)) || !bad && (err != nil || strings.Join(got, " ") != want) {
			t.Errorf("%s: %q, %v, want %s", line, got, err, want)
		}
	}
}

// TestFollow: what comes next finds the inventory that was written.
func TestFollow(t *testing.T) {
	for _, c := range []struct{ variable, line, want string }{
		{"", "h", ""},
		{"", "--file inventory.yaml h", ""},
		{"", "--file it's.yaml h", ` 'it'\''s.yaml'`},
		{"", "--file - h", " FILE"},
		{"", "--ssh-config c --file rack.yaml h", " --ssh-config c rack.yaml"},
		{"mine.yaml", "h", ""},
		{"mine.yaml", "--file inventory.yaml h", " inventory.yaml"},
	} {
		t.Setenv("KGPU_INVENTORY", c.variable)
		err := typedInit(t, "", func(ctx *cli.Context) error {
			file, err := inventoryPath(ctx, "file")
			if got := follow(ctx, file); got != c.want {
				t.Errorf("%s with %q: %q, want %q", c.line, c.variable, got, c.want)
			}
			return err
		}, strings.Fields(c.line)...)
		if err != nil {
			t.Error(err)
		}
	}
}

// TestInterruptedQuestion: whoever does not answer and presses Ctrl-C is not waited for.
func TestInterruptedQuestion(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	app := App("test", Group("", Init()))
	never, typed := io.Pipe()
	defer typed.Close()
	app.Reader, app.Writer, app.ErrWriter = readerFunc(func(p []byte) (int, error) {
		cancel(errors.New("interrupt signal received"))
		return never.Read(p)
	}), io.Discard, io.Discard
	err := app.RunContext(ctx, []string{"kgpu", "init", "--scan", "-"})
	if _, there := os.Stat(usualInventory); err == nil || there == nil {
		t.Errorf("%v, %v", err, there)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
