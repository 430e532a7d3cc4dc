package command

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// What package flag, beneath the library, says of an option that a command does not have, of one without its value, and of one with
// another: neither of them has types for that.
var (
	notDefined = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	noValue    = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	wrongValue = regexp.MustCompile(`^invalid (?:boolean )?value ("(?s:.*)") for (?:flag )?-(.*?): `)
)

// usageError says what is wrong with the options of a command, and which one was meant. The flags are read when it is needed:
// the library adds its own.
func usageError(command string, flags *[]cli.Flag) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		text := err.Error()
		if m := notDefined.FindStringSubmatch(text); m != nil {
			have := optionNames(*flags)
			hint := cmp.Or(meantOption(command, m[1], have), nearest.Hint(dashes(m[1]), have))
			return usagef("%s has no option %q.%s (%s --help lists them)", command, dashes(m[1]), hint, command)
		}
		if m := noValue.FindStringSubmatch(text); m != nil {
			return usagef("%s: %s needs a value", command, dashes(m[1]))
		}
		if m := wrongValue.FindStringSubmatch(text); m != nil {
			return usagef("%s: %s cannot be %s", command, dashes(m[2]), m[1])
		}
		return usagef("%s: %v", command, err)
	}
}

// misplaced is usageError of what stands before a command: options of commands stand behind it.
func misplaced(app *cli.App) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, sub bool) error {
		if m := notDefined.FindStringSubmatch(err.Error()); m != nil {
			for _, command := range app.Commands {
				if slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), m[1]) }) {
					return usagef("%[1]s stands behind a command: kgpu COMMAND %[1]s", dashes(m[1]))
				}
			}
		}
		return usageError(app.Name, &app.Flags)(c, err, sub)
	}
}

// optionNames are the options as they are typed, the long ones.
func optionNames(flags []cli.Flag) (names []string) {
	for _, flag := range flags {
		for _, name := range flag.Names() {
			if len(name) > 1 {
				names = append(names, dashes(name))
			}
		}
	}
	return names
}

// dashes puts as many dashes before an option's name as people type.
func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// synonyms are what other tools call a command of kgpu: kubectl, kubeadm, terraform, docker compose, kind, k3s, minikube.
var synonyms = map[string][]string{
	"up":                   {"apply", "bootstrap", "converge", "create", "deploy", "install", "provision", "reconcile", "resume", "retry", "start", "sync"},
	"plan":                 {"diff", "dry-run", "preview"},
	"validate":             {"lint"},
	"init":                 {"generate", "new"},
	"add-control-plane":    {"add-master", "add-controlplane"},
	"add-worker":           {"add", "add-node", "join", "scale"},
	"remove-control-plane": {"remove-master", "remove-controlplane"},
	"remove-worker":        {"delete-node", "evict", "leave", "remove-node"},
	"reset":                {"clean", "delete", "destroy", "down", "nuke", "purge", "remove", "rm", "teardown", "uninstall"},
	"status":               {"gpus", "list", "ls", "nodes", "ps", "top"},
	"doctor":               {"check", "debug", "diagnose", "fix", "health", "repair", "verify"},
	"certs":                {"cert", "certificates", "renew", "rotate"},
	"smoke":                {"prove", "test"},
	"attach":               {"follow", "watch"},
	"runs":                 {"history", "log"},
	"kubeconfig":           {"config", "context"},
	"kubectl":              {"cordon", "describe", "drain", "exec", "get", "k", "pods"},
	"ssh":                  {"connect", "login", "shell"},
	"notebook":             {"jupyter", "lab"},
	"dashboard":            {"ui", "web"},
	"support":              {"bundle", "report"},
	"backup":               {"dump", "export", "save", "snapshot"},
	"restore":              {"import", "recover", "rollback"},
	"upgrade":              {"update"},
}

// meant names the command that somebody wanted who knows it by another name; empty: none.
func meant(word string) string {
	for command, others := range synonyms {
		if slices.Contains(others, strings.ToLower(word)) {
			return fmt.Sprintf(" Did you mean %q?", command)
		}
	}
	return ""
}

// optionSynonyms are what other tools call an option of kgpu; of several that a command has, the first is meant. -f is a file: who
// means to force something writes the word out.
var optionSynonyms = []struct {
	option string
	others []string
}{
	{"--yes", []string{"approve", "assume-yes", "auto-approve", "force", "no-input", "non-interactive"}},
	{"--file", []string{"f", "o", "out", "output"}},
	{"--inventory", []string{"c", "config", "f", "file"}},
	{"--limit", []string{"host", "hosts", "l", "node", "nodes"}},
	{"--output json", []string{"json"}},
	{"--verbose", []string{"debug"}},
	{"--only", []string{"tags"}},
	{"--skip", []string{"skip-tags"}},
}

// dryRun are what other tools call an option to see what would be done.
var dryRun = []string{"check", "diff", "dry-run", "n", "what-if"}

// meantOption names the option, of those that a command has, that somebody wanted who knows it by another name, or what does
// that; empty: none.
func meantOption(command, word string, have []string) string {
	switch {
	case slices.Contains(dryRun, word) && command == "kgpu up":
		return " kgpu plan says what it would do."
	case slices.Contains(dryRun, word) && slices.Contains(have, "--yes"):
		return " It says what it would do, and asks, before it changes anything."
	case (word == "f" || word == "file") && command == "kgpu restore":
		return " The backup is its argument: kgpu restore FILE."
	}
	for _, s := range optionSynonyms {
		if name, _, _ := strings.Cut(s.option, " "); slices.Contains(s.others, word) && slices.Contains(have, name) {
			return fmt.Sprintf(" Did you mean %q?", s.option)
		}
	}
	return ""
}
