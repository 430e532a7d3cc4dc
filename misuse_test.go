package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/command"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// wrongly are arguments that somebody may type by mistake: hosts, files and folders that there are not or that are something
// else, one twice, nothing, and what no program expects.
var wrongly = [][]string{
	{}, {""}, {"no-such-host"}, {"cp1"}, {"w1"}, {"w1", "w1"}, {"cp1", "w1"}, {"127.0.0.1"}, {"w[1-2]"}, {"w[1-"}, {"w1,w2"}, {"root@w1"}, {"w1:99999"},
	{"."}, {"no/such/file.yaml"}, {"empty.yaml"}, {"bad.yaml"}, {"hosts.yaml"}, {"binary"}, {"private/inventory.yaml"}, {"good.yaml", "good.yaml"},
	{"last", "w1", "no/such"}, {"last", "w1", "os/modules", "more"}, {"\x00"}, {"--", "--"}, {"65", "x"}, {strings.Repeat("x", 5000)}, {"../../etc/passwd"}, {"${HOME}"},
}

// values are what an option of a kind may wrongly be given.
func values(flag cli.Flag) []string {
	switch flag.(type) {
	case *cli.IntFlag:
		return []string{"", "x", "-1", "0", "70000", "99999999999999999999", "1.5"}
	case *cli.DurationFlag:
		return []string{"", "x", "-1s", "10", "99999999h"}
	case *cli.BoolFlag:
		return []string{"maybe", ""}
	}
	return []string{"", ".", "no/such/file", "no-such", "w1", "cp1", "[", "json", "-", "bad.yaml", "\x00", "private/x"}
}

// TestMisuse gives every command what it does not want. It says what is wrong, and that is never a defect of kgpu: exit status 1.
func TestMisuse(t *testing.T) {
	for _, c := range leaves(newApp().Commands, nil) {
		t.Run(strings.Join(c.path, " "), func(t *testing.T) {
			folder(t)
			for _, args := range misuses(c) {
				misuse(t, append([]string{"kgpu"}, args...))
			}
		})
	}
}

// folder is where the commands run: an inventory of hosts on which nothing listens, and files that are none.
func folder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("PATH", t.TempDir())
	good := "timeouts: {link: 1s, reboot: 1s}\nssh: {port: 1, hostKeyPolicy: accept-new, knownHosts: " + t.TempDir() + "/known_hosts}\n" +
		"hosts:\n  - {address: 127.0.0.1, name: cp1, role: control-plane}\n  - {address: 127.0.0.2, name: w1}\n"
	for name, text := range map[string]string{
		"inventory.yaml": good, "good.yaml": good, "empty.yaml": "", "bad.yaml": "host: []\n", "hosts.yaml": "hosts: []\n", "binary": "\x00\xff\xfe",
	} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	must(t, os.Mkdir("private", 0))
}

// leaf is a command that does something itself: one of those that only have others below them has no options.
type leaf struct {
	*cli.Command
	path []string
}

func leaves(commands []*cli.Command, path []string) (out []leaf) {
	for _, c := range commands {
		at := append(append([]string{}, path...), c.Name)
		if len(c.Subcommands) > 0 {
			out = append(out, leaves(c.Subcommands, at)...)
			if len(c.Flags) == 0 {
				continue
			}
		}
		out = append(out, leaf{c, at})
	}
	return out
}

// misuses are the command lines: each argument with and without an inventory, and each option with each value.
func misuses(c leaf) (out [][]string) {
	line := func(args ...string) { out = append(out, append(append([]string{}, c.path...), args...)) }
	for _, args := range wrongly {
		line(args...)
		line(append([]string{"-i", "good.yaml"}, args...)...)
	}
	for _, flag := range c.Flags {
		for _, value := range values(flag) {
			line("--" + flag.Names()[0] + "=" + value)
			line("--"+flag.Names()[0]+"="+value, "w1")
		}
	}
	if c.Name == "render" {
		for _, value := range values(&cli.StringFlag{}) { // where the inventory's hosts are not asked
			line("--assume", "debian-13", "--out", value)
		}
	}
	return out
}

// misuse runs one. What kgpu doctor finds, it tells with the same status; what is wrong with a command line it tells otherwise.
func misuse(t *testing.T, args []string) {
	t.Helper()
	var out, errs bytes.Buffer
	app := newApp()
	app.Reader, app.Writer, app.ErrWriter = strings.NewReader(""), &out, &errs
	status := command.Run(t.Context(), app, args)
	said := out.String() + errs.String()
	if args[1] == "doctor" && status == reason.ExitFound && strings.Contains(out.String(), "SSH_UNREACHABLE") {
		return
	}
	if status == reason.ExitInternal || status != reason.ExitOK && said == "" {
		t.Errorf("%.200q ended with %d and said %.300q", args, status, said)
	}
}
