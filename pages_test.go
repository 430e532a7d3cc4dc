package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/command"
)

// TestPages holds that every kgpu command line in the pages for users is one that kgpu takes.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	must(t, err)
	all := 0
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, line := range commandLines(string(text)) {
			all++
			if err := parses(line); err != nil {
				t.Errorf("%s: %s: %v", page, line, err)
			}
		}
	}
	if all < 80 {
		t.Errorf("only %d command lines were found", all)
	}
}

// TestExamples holds that every command has an example or two, and that kgpu takes them.
func TestExamples(t *testing.T) {
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			lines := commandLines("```\n" + c.UsageText + "```\n")
			if len(lines) < 1 || len(lines) > 2 {
				t.Errorf("%s has %d examples (bootstrap/command/examples.go)", c.Name, len(lines))
			}
			for _, line := range lines {
				if err := parses(line); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			walk(c.Subcommands)
		}
	}
	walk(newApp().Commands)
}

// TestCommandLines holds that the tests above find command lines, and find fault with those that are wrong.
func TestCommandLines(t *testing.T) {
	page := "a `kgpu plan` b\n\n    kgpu up --yes   # now\n\n```sh\n$ bin/kgpu reset 'a b' --yes && kgpu plan | less\nexport A=$(kgpu man)\n```\n"
	want := []string{"kgpu plan", "kgpu up --yes", "kgpu reset 'a b' --yes", "kgpu plan", "kgpu man"}
	if got := commandLines(page); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	for line, ok := range map[string]bool{
		"kgpu up": true, "kgpu up lab.yaml -o json": true, "kgpu up --limit": false, "kgpu up --limti gpu1": false, "kgpu ups": false, "kgpu --help": true,
		"kgpu man page": false, "kgpu plan one.yaml two.yaml": false, "kgpu reset a b c": true, "kgpu": true, "kgpu add-worker": true, "kgpu add-worker --yes": false,
	} {
		if err := parses(line); (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
	}
}

var (
	bracketed = regexp.MustCompile(`\[[^\[\]]*\]`)
	inline    = regexp.MustCompile("`(?:bin/)?kgpu( [^`\n]+)`")
	onLine    = regexp.MustCompile(`(?:^\s*(?:\$ )?|&& |\| |; |\()(?:bin/)?kgpu((?: (?:'[^']*'|[^\s'|&;)>#]+))*)`)
	comment   = regexp.MustCompile(`\s+#.*$`)
	word      = regexp.MustCompile(`'[^']*'|[^\s']+`)
)

// commandLines are the kgpu command lines in the code blocks and between the backquotes of a page, without what other programs
// get of them.
func commandLines(page string) (out []string) {
	fenced := false
	language := ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
			language = strings.TrimPrefix(strings.TrimSpace(line), "```")
		case fenced && !slices.Contains([]string{"", "sh", "console"}, language):
		case fenced, strings.HasPrefix(line, "    "):
			for _, m := range onLine.FindAllStringSubmatch(comment.ReplaceAllString(line, ""), -1) {
				out = append(out, "kgpu"+m[1])
			}
		default:
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				out = append(out, "kgpu"+onLine.FindStringSubmatch("kgpu" + m[1])[1])
			}
		}
	}
	return out
}

// parses reports what kgpu finds wrong with a command line, its options and the number of its arguments; nothing is done.
func parses(line string) error {
	words := word.FindAllString(line, -1)
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	app := newApp()
	var said bytes.Buffer
	app.Writer, app.ErrWriter = &said, &said
	var stub func(commands []*cli.Command)
	stub = func(commands []*cli.Command) {
		for _, c := range commands {
			c.Action = func(ctx *cli.Context) error {
				if len(words) == 2 {
					return nil // the command's name, in a sentence
				}
				return countArguments(c, ctx.NArg())
			}
			if len(c.Subcommands) > 0 {
				c.Action = func(ctx *cli.Context) error {
					if !ctx.Args().Present() {
						return nil
					}
					return fmt.Errorf("%s has no command %q", c.Name, ctx.Args().First())
				}
			}
			stub(c.Subcommands)
		}
	}
	stub(app.Commands)
	if code := command.Run(context.Background(), app, words); code != 0 {
		return fmt.Errorf("%s", strings.TrimSpace(said.String()))
	}
	return nil
}

// countArguments holds a number of arguments against the command's usage: HOST [FILE], HOST…
func countArguments(c *cli.Command, n int) error {
	least, most, open := 0, 0, 0
	for _, place := range strings.Fields(c.ArgsUsage) {
		inside := bracketed.ReplaceAllString(place, "") // [USER@]ADDRESS[:PORT] is ADDRESS
		optional := open > 0 || inside == "" || strings.HasPrefix(inside, "[")
		open += strings.Count(place, "[") - strings.Count(place, "]")
		if strings.HasSuffix(place, "--") {
			continue // no argument, but what comes before those of others
		}
		if most++; !optional {
			least++
		}
		if strings.Contains(place, "…") {
			most = 1000
		}
	}
	if n < least || n > most {
		return fmt.Errorf("%d arguments for %q", n, c.ArgsUsage)
	}
	return nil
}

// TestCountArguments holds that the words of a command's usage are understood.
func TestCountArguments(t *testing.T) {
	for _, c := range []struct {
		usage       string
		least, most int
	}{
		{"", 0, 0}, {"[INVENTORY]", 0, 1}, {"HOST…", 1, 9}, {"[HOST…]", 0, 9}, {"[USER@]ADDRESS[:PORT]…", 1, 9}, {"[RUN|last [HOST [STEP]]]", 0, 3},
		{"-- ARGUMENT…", 1, 9}, {"[HOST [-- COMMAND…]]", 0, 9}, {"NAME", 1, 1},
	} {
		for n := range 10 {
			err := countArguments(&cli.Command{ArgsUsage: c.usage}, n)
			if ok := c.least <= n && n <= c.most; ok != (err == nil) {
				t.Errorf("%q with %d arguments: %v", c.usage, n, err)
			}
		}
	}
}
