package command

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/inventory"
)

// A list of commands has a line for each, to the end of a clause.
func TestBrief(t *testing.T) {
	for usage, want := range map[string]string{
		"prove every card": "prove every card",
		"say what up would do; exit status 2 when so": "say what up would do",
		"run kubectl on the cluster: here, or there":  "run kubectl on the cluster",
		"log in to a host, or run it, as it says":     "log in to a host, or run it",
		"no clause ends in this very long sentence":   "no clause ends in this very long sentence",
	} {
		if got := brief(usage, 30); got != want {
			t.Errorf("%q became %q, want %q", usage, got, want)
		}
	}
}

// Help and questions are no wider than the terminal, and cut no word.
func TestWordsWrap(t *testing.T) {
	show := map[string]func(w io.Writer){
		"reset": func(w io.Writer) {
			app := App("test", Group("", Reset()))
			app.Writer, app.Reader = w, strings.NewReader("no\n")
			inv := &inventory.Inventory{Cluster: "lab", Hosts: make([]inventory.Host, 3)}
			c := cli.NewContext(app, flag.NewFlagSet("reset", flag.ContinueOnError), nil)
			c.Command = app.Commands[0]
			if err := (&terminal{}).confirm(c, apart(inv, []string{"10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14"}), "lab"); err == nil {
				t.Error("no is taken for a yes")
			}
		},
	}
	for _, command := range []*cli.Command{Init(), Plan(), Up(), Status(), Doctor(), Explain(), Reset()} {
		command.HelpName = "kgpu " + command.Name
		show[command.Name+" --help"] = func(w io.Writer) { printHelp(w, "", command) }
	}
	for name, show := range show {
		whole := &report.Sheet{}
		show(whole)
		known := strings.Fields(whole.String())
		for _, width := range []int{60, 80, 100} {
			sheet := &report.Sheet{As: report.Look{Width: width}}
			show(sheet)
			for line := range strings.Lines(sheet.String()) {
				words := strings.Fields(line)
				if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width && len(words) > 1 {
					t.Errorf("%s is wider than %d: %q", name, width, line)
				}
				for _, word := range words {
					if !slices.Contains(known, word) {
						t.Errorf("%s cuts a word at %d: %q", name, width, word)
					}
				}
			}
		}
	}
}
