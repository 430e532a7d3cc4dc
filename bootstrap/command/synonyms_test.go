package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func wholeApp() *cli.App {
	return App("1", Group("all", Init(), Validate(), Plan(), Up(), AddWorker(), AddControlPlane(), RemoveWorker(), RemoveControlPlane(), Upgrade(), Status(), Kubeconfig(),
		Kubectl(), Notebook(), Dashboard(), SSH(), Smoke(), Backup(), Restore(), Doctor(), Certs(), Attach(), Runs(), Support(), Reset(), Schema()))
}

// Words of other tools lead to what does here what they do there.
func TestSynonyms(t *testing.T) {
	commands := commandNames(wholeApp().VisibleCommands())
	seen := map[string]string{}
	for command, others := range synonyms {
		if !slices.Contains(commands, command) {
			t.Errorf("there is no command %s", command)
		}
		for _, word := range others {
			if slices.Contains(commands, word) || seen[word] != "" {
				t.Errorf("%s stands for %s, and for %s%s", word, command, seen[word], word)
			}
			seen[word] = command
		}
	}
	for _, c := range []struct{ typed, want string }{
		{"destroy", `no command "destroy". Did you mean "reset"?`},
		{"Apply", `no command "Apply". Did you mean "up"?`},
		{"top", `Did you mean "status"?`},
		{"statsu", `Did you mean "status"?`},
		{"xyzzy", `no command "xyzzy". (kgpu --help`},
		{"up --dry-run", "kgpu plan says what it would do"},
		{"reset -n", "It says what it would do, and asks"},
		{"up --auto-approve", `Did you mean "--yes"?`},
		{"status --json", `Did you mean "--output json"?`},
		{"plan -f x", `Did you mean "--inventory"?`},
		{"reset -f x", `Did you mean "--inventory"?`},
		{"reset --force", `Did you mean "--yes"?`},
		{"backup -f x", `Did you mean "--file"?`},
		{"restore -f x", "The backup is its argument: kgpu restore FILE."},
		{"restore --file x", "The backup is its argument: kgpu restore FILE."},
		{"schema --host x", `kgpu schema has no option "--host". (`},
	} {
		app := wholeApp()
		var errs strings.Builder
		app.Writer, app.ErrWriter = &errs, &errs
		if status := Run(t.Context(), app, append([]string{"kgpu"}, strings.Fields(c.typed)...)); status != 3 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("kgpu %s ended with %d: %s", c.typed, status, errs.String())
		}
	}
	options := map[string]bool{}
	for _, command := range wholeApp().Commands {
		for _, name := range optionNames(command.Flags) {
			options[name] = true
		}
	}
	for _, s := range optionSynonyms {
		if name, _, _ := strings.Cut(s.option, " "); !options[name] {
			t.Errorf("there is no option %s", s.option)
		}
	}
}

// -o is the format of what is printed, in every command that has it; a file that is written is named by another option.
func TestOutputIsAFormat(t *testing.T) {
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			for _, flag := range c.Flags {
				names := flag.Names()
				if !slices.Contains(names, "output") && !slices.Contains(names, "o") {
					continue
				}
				if f, ok := flag.(*cli.StringFlag); !ok || f.TakesFile || f.Value != "text" && f.Value != "table" || !slices.Equal(names, []string{"output", "o"}) {
					t.Errorf("%s: %v is no format, or is called otherwise elsewhere", c.Name, names)
				}
			}
			walk(c.Subcommands)
		}
	}
	walk(append(wholeApp().Commands, User(), Explain(), Render()))
}
