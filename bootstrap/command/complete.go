package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report/schema"
	"kgpu.dev/kgpu/inventory"
)

// completeWord is the first argument with which the scripts of kgpu completion ask what a word may become. It is not one of the
// library's own ways: that runs the command itself where `--` is among the words, and knows nothing of an empty last word.
const completeWord = "__complete"

// fileNames is the line that stands for names of files, which the shell knows best.
const fileNames = ":files"

// candidate is what a word may become.
type candidate struct{ word, what string }

// complete writes what the last of words may become; it may be empty. A line is a word, or a word, a tab and what it is. Nothing
// is contacted, and what cannot be known is left out.
func complete(w io.Writer, app *cli.App, words []string) {
	if len(words) == 0 {
		return
	}
	last := len(words) - 1
	t := typed{app: app, current: words[last]}
	t.read(slices.DeleteFunc(slices.Clone(words[:last]), func(word string) bool { return word == "=" })) // bash: --only = os/
	for _, c := range t.candidates() {
		if len(c.word) < len(t.current) || !strings.EqualFold(c.word[:len(t.current)], t.current) {
			if c.word != fileNames {
				continue
			}
		}
		if c.what != "" {
			c.word += "\t" + c.what
		}
		fmt.Fprintln(w, c.word)
	}
}

// typed is a command line up to the word that is being typed.
type typed struct {
	app     *cli.App
	command *cli.Command        // nil: none yet
	values  map[string][]string // of options, by the first of their names
	used    map[string]bool     // options, by the first of their names
	args    []string            // of the command
	pending cli.Flag            // the option whose value is being typed
	foreign bool                // behind `--`: the words are not kgpu's
	current string
}

func (t *typed) read(words []string) {
	t.values, t.used = map[string][]string{}, map[string]bool{}
	for _, word := range words {
		switch {
		case t.pending != nil:
			name := t.pending.Names()[0]
			t.values[name], t.pending = append(t.values[name], word), nil
		case word == "--":
			t.foreign = true
			return
		case strings.HasPrefix(word, "-"):
			t.readOption(word)
		case t.command == nil:
			if t.command = t.app.Command(word); t.command == nil {
				t.args = append(t.args, word) // help, or a mistake
			}
		case len(t.args) == 0 && t.command.Command(word) != nil:
			t.command = t.command.Command(word)
		default:
			t.args = append(t.args, word)
		}
	}
}

func (t *typed) readOption(word string) {
	name, value, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
	flag := t.flag(name)
	if flag == nil {
		return
	}
	first := flag.Names()[0]
	t.used[first] = true
	switch {
	case !documented(flag).TakesValue():
	case given:
		t.values[first] = append(t.values[first], value)
	default:
		t.pending = flag
	}
}

func (t *typed) flags() []cli.Flag {
	if t.command == nil {
		return []cli.Flag{cli.VersionFlag}
	}
	return t.command.Flags
}

func (t *typed) flag(name string) cli.Flag {
	i := slices.IndexFunc(t.flags(), func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return t.flags()[i]
}

// candidates are what the current word may become, before the shell's choice of those that begin like it.
func (t *typed) candidates() []candidate {
	switch {
	case t.foreign:
		return nil
	case t.pending != nil:
		return t.optionValues(t.pending, "")
	case strings.HasPrefix(t.current, "-"):
		option, _, valued := strings.Cut(t.current, "=")
		if flag := t.flag(strings.TrimLeft(option, "-")); valued && flag != nil {
			return t.optionValues(flag, option+"=")
		}
		return t.options()
	case t.command == nil && (len(t.args) == 0 || t.args[0] == "help" && len(t.args) == 1):
		return commandCandidates(t.app.VisibleCommands())
	case t.command == nil:
		return nil
	}
	return slices.Concat(commandCandidates(t.command.VisibleCommands()), t.arguments())
}

func commandCandidates(commands []*cli.Command) (out []candidate) {
	for _, command := range commands {
		out = append(out, candidate{command.Name, command.Usage})
	}
	return out
}

// options are those of the command that are not there yet, or may be there again.
func (t *typed) options() (out []candidate) {
	for _, flag := range t.flags() {
		_, again := flag.(*cli.StringSliceFlag)
		if t.used[flag.Names()[0]] && !again {
			continue
		}
		_, usage := placeholder(documented(flag).GetUsage())
		for _, name := range flag.Names() {
			if len(name) > 1 {
				out = append(out, candidate{dashes(name), usage})
			}
		}
	}
	return append(out, candidate{"--help", "show help"})
}

// optionValues are those that the word in the option's usage stands for, with a prefix.
func (t *typed) optionValues(flag cli.Flag, prefix string) []candidate {
	out := without(t.kind(placeholder(documented(flag).GetUsage())), t.values[flag.Names()[0]])
	for i := range out {
		if out[i].word != fileNames {
			out[i].word = prefix + out[i].word
		}
	}
	return out
}

// arguments are those that the command's usage names at this place: HOST, RUN, INVENTORY.
func (t *typed) arguments() []candidate {
	places := strings.Fields(strings.NewReplacer("[-- ", "-- ", "[", "", "]", "").Replace(t.command.ArgsUsage))
	if dashes := slices.Index(places, "--"); dashes >= 0 {
		places = places[:dashes] // what follows is another program's
	}
	if len(places) == 0 {
		return nil
	}
	place := min(len(t.args), len(places)-1)
	repeats := strings.Contains(places[place], "…")
	if len(t.args) >= len(places) && !repeats {
		return nil
	}
	var out []candidate
	for word := range strings.SplitSeq(strings.Trim(places[place], "…."), "|") { // RUN|last
		if word == strings.ToLower(word) {
			out = append(out, candidate{word: word})
		}
		out = append(out, t.kind(word, t.command.Description)...)
	}
	return without(out, t.args)
}

// without drops what is there already.
func without(candidates []candidate, there []string) []candidate {
	return slices.DeleteFunc(candidates, func(c candidate) bool { return slices.Contains(there, c.word) })
}

// formats are the words for formats that a usage may name.
var formats = regexp.MustCompile(`\b(text|json|yaml|wide|table)\b`)

// kind are the words that the help's word for an argument or a value stands for. What the help says is therefore what is
// completed, for every command that uses the same words. The usage names the formats where the word is FORMAT.
func (t *typed) kind(word, usage string) []candidate {
	switch word {
	case "INVENTORY", "FILE", "FOLDER", "PATH":
		return []candidate{{word: fileNames}}
	case "HOST":
		return t.hosts()
	case "ID", "STEP":
		return plain(plan.Kinds.IDs())
	case "REASON":
		var out []candidate
		for _, r := range reason.Table() {
			out = append(out, candidate{string(r.ID), r.Advice})
		}
		return out
	case "RUN":
		return plain(t.runs())
	case "SHELL":
		return plain(shellNames)
	case "SCHEMA":
		return plain(append([]string{"inventory"}, schema.Names()...))
	case "FORMAT":
		return plain(slices.Compact(slices.Sorted(slices.Values(formats.FindAllString(usage, -1)))))
	}
	return nil
}

func plain(words []string) (out []candidate) {
	for _, word := range words {
		out = append(out, candidate{word: word})
	}
	return out
}

// inventory is the one that the command would read; nil: there is none, or none that is valid.
func (t *typed) inventory() *inventory.Inventory {
	path := ""
	if given := t.values["inventory"]; len(given) > 0 {
		path = given[len(given)-1]
	}
	if t.command.ArgsUsage == inventoryArgument && len(t.args) == 1 {
		path = t.args[0]
	}
	inv, _ := inventory.Load(cmp.Or(path, os.Getenv(inventoryVariable), usualInventory), inventory.Options{})
	return inv
}

func (t *typed) hosts() (out []candidate) {
	inv := t.inventory()
	if inv == nil {
		return nil
	}
	for _, h := range inv.Hosts {
		what := string(h.Role)
		if h.Name != "" {
			what += " " + h.Address
		}
		out = append(out, candidate{h.ID(), what})
	}
	return out
}

// runs are the names of the runs' folders, the newest first: of the inventory's cluster, or of all where there is none.
func (t *typed) runs() (out []string) {
	root, err := history.Root()
	if err != nil {
		return nil
	}
	cluster := "*"
	if inv := t.inventory(); inv != nil {
		cluster = inv.Cluster
	}
	folders, err := filepath.Glob(filepath.Join(root, cluster, "[0-9]*"))
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		out = append(out, filepath.Base(folder))
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(b, a) })
	return out
}
