package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/command"
)

// said is what kgpu prints, on both streams.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	app := newApp()
	app.Writer, app.ErrWriter = &out, &out
	command.Run(t.Context(), app, append([]string{"kgpu"}, args...))
	return out.String()
}

// optionRow is where the row of an option begins.
var optionRow = regexp.MustCompile(`\n {2}(?:-., | {4}--)`)

// TestHelp holds that help is in the order of the table of commands, and fits a terminal of 80 columns.
func TestHelp(t *testing.T) {
	help := said(t, "--help")
	var groups []string
	for _, c := range newApp().Commands {
		if !c.Hidden && !slices.Contains(groups, c.Category) {
			groups = append(groups, c.Category)
		}
	}
	at := -1
	for _, group := range groups {
		i := strings.Index(help, "\n"+group+"\n")
		if i <= at {
			t.Errorf("%q is not where it belongs", group)
		}
		at = i
	}
	if n := strings.Count(help, "\n"); n > 50 {
		t.Errorf("help has %d lines", n)
	}
	fits(t, help)
	var walk func(parent []string, commands []*cli.Command)
	walk = func(parent []string, commands []*cli.Command) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			words := append(slices.Clone(parent), c.Name)
			if !strings.Contains(help, "  "+words[0]+" ") {
				t.Errorf("help does not name %s", words[0])
			}
			text := said(t, append(words, "--help")...)
			if !strings.Contains(text, strings.Join(words, " ")) || !strings.Contains(text, "\nExamples\n") || !strings.Contains(text, c.Usage[:10]) {
				t.Errorf("help of %q is\n%s", words, text)
			}
			for _, option := range optionRow.Split(text, -1) {
				if strings.Count(option, "(default:") > 1 {
					t.Errorf("help of %q tells two defaults of %s", words, option)
				}
			}
			fits(t, text)
			walk(words, c.Subcommands)
		}
	}
	walk(nil, newApp().Commands)
	for _, words := range [][]string{{"help"}, {"-h"}, {"help", "help"}, {"help", "--help"}} {
		if got := said(t, words...); got != help {
			t.Errorf("kgpu %q says\n%s", words, got)
		}
	}
	for typed, want := range map[string][]string{
		"help up": {"up", "--help"}, "-h up": {"up", "--help"}, "up gone.yaml --help": {"up", "--help"}, "up --yes -h gone.yaml": {"up", "--help"},
		"help runs logs": {"runs", "logs", "--help"}, "help user create": {"user", "create", "--help"}, "user create alice -h": {"user", "create", "--help"}, "user help": {"user", "--help"},
		"help ssh": {"ssh", "--help"}, "version": {"--version"},
	} {
		if got := said(t, strings.Fields(typed)...); got != said(t, want...) {
			t.Errorf("kgpu %s says\n%s", typed, got)
		}
	}
	for _, words := range [][]string{{"--version"}, {"-v"}, {"--version", "-v"}} {
		if got := said(t, words...); got != "kgpu version "+version+"\ncatalog of "+catalog.AsOf.Format(time.DateOnly)+"\n" {
			t.Errorf("kgpu %q says\n%s", words, got)
		}
	}
	fits(t, said(t))
	if got, ok := strings.CutPrefix(said(t), help); !ok || !strings.Contains(got, "kgpu init ADDRESS…") {
		t.Errorf("kgpu alone says at its end\n%s", got)
	}
}

func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
}

// TestDidYouMean holds that a mistyped word is answered with the one that was meant.
func TestDidYouMean(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("good.yaml", []byte("hosts: [{address: 192.0.2.1, role: control-plane}]\n"), 0o600))
	for typed, want := range map[string]string{
		"rest":                           `no command "rest". Did you mean "reset"?`,
		"help rest":                      `no command "rest". Did you mean "reset"?`,
		"up --outptu json":               `kgpu up has no option "--outptu". Did you mean "--output"?`,
		"--verison":                      `kgpu has no option "--verison". Did you mean "--version"?`,
		"explain HOST_APT_LOKED":         `Did you mean "HOST_APT_LOCKED"?`,
		"completion bsh":                 `Did you mean "bash"?`,
		"completion":                     `for which shell?`,
		"up --limit":                     `kgpu up: --limit needs a value`,
		"up --max-unavailable some":      `kgpu up: --max-unavailable cannot be "some"`,
		"up --yes=perhaps":               `kgpu up: --yes cannot be "perhaps"`,
		"-i a.yaml up":                   `-i stands behind a command: kgpu COMMAND -i`,
		"--output json plan":             `--output stands behind a command: kgpu COMMAND --output`,
		"man page":                       `kgpu man takes no arguments`,
		"user list alice":                `kgpu user list takes no arguments`,
		"reset h":                        `there is no inventory inventory.yaml`,
		"reset help --yes":               `there is no inventory inventory.yaml`,
		"up good.yaml --skip os/modlues": `no step "os/modlues". Did you mean "os/modules"?`,
		"kubernetes":                     `no command "kubernetes". (kgpu --help lists them)`,
		"explain HOST_APT_LOKED -o jsn":  `--output is text or json, not "jsn"`,
	} {
		if got := said(t, strings.Fields(typed)...); !strings.Contains(got, want) || strings.HasPrefix(got, "kgpu: kgpu") {
			t.Errorf("kgpu %s says %s", typed, got)
		}
	}
}

// TestManual holds that the page of the manual has every command, argument and option.
func TestManual(t *testing.T) {
	page := said(t, "man")
	if !strings.HasPrefix(page, ".") || !strings.Contains(page, ".TH") {
		t.Fatalf("the page begins with %.60q", page)
	}
	plain := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "", `\fI`, "", `\fP`, "", `\[la]`, "<", `\&`, "").Replace(page)
	for _, c := range newApp().Commands {
		if c.Hidden {
			continue
		}
		for _, want := range []string{"kgpu " + c.Name, c.ArgsUsage} {
			if !strings.Contains(plain, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		for _, flag := range c.Flags {
			if name := flag.Names()[0]; !strings.Contains(plain, "--"+name) {
				t.Errorf("the page lacks --%s of %s", name, c.Name)
			}
		}
	}
	for _, want := range []string{"the inventory FILE (default: inventory.yaml) [$KGPU_INVENTORY]", "at the same time (default: 1)"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
