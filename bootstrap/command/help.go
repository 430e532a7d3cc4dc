package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/report"
)

const (
	helpWidth = 80 // columns that help fits in, unless a terminal has less
	appColumn = 22 // of what a command does, in lists of commands
)

// The library sorts groups by the alphabet and does not wrap; its own way to have that otherwise is this variable.
func init() { cli.HelpPrinter = printHelp }

// printHelp writes the help of the application, or of a command.
func printHelp(w io.Writer, _ string, about any) {
	var b strings.Builder
	switch x := about.(type) {
	case *cli.App:
		appHelp(&b, x)
	case *cli.Command:
		commandHelp(&b, x)
	}
	_, _ = io.WriteString(report.On(w), b.String()) // nobody is left to tell
}

// appHelp lists the commands in the order of their table, by what a person wants to do.
func appHelp(b *strings.Builder, app *cli.App) {
	fmt.Fprintf(b, "%s: %s\n", app.Name, app.Usage)
	group := ""
	for _, command := range app.VisibleCommands() {
		if command.Category != group {
			group = command.Category
			fmt.Fprintf(b, "\n%s\n", group)
		}
		row(b, appColumn, command.Name, brief(command.Usage, helpWidth-appColumn-2))
	}
	fmt.Fprintf(b, "\n%[1]s COMMAND --help tells about a command, %[1]s --version which %[1]s this is.\n", app.Name)
}

// brief is as much of a usage as fits into one line, to the end of a clause: a command's own help has the rest.
func brief(usage string, width int) string {
	fits := func(text string) bool { return utf8.RuneCountInString(text) <= width }
	short := usage
	for _, end := range []string{"; ", ": "} {
		if !fits(short) {
			short, _, _ = strings.Cut(short, end)
		}
	}
	for !fits(short) {
		i := strings.LastIndex(short, ", ")
		if i < 0 {
			return short
		}
		short = short[:i]
	}
	return short
}

// printFirstStep says what to type first: help alone does not tell where to begin.
func printFirstStep(w io.Writer) error {
	_, err := fmt.Fprint(report.On(w), "\nBegin with: kgpu init ADDRESS…, which writes an inventory of your machines.\n")
	return err
}

func commandHelp(b *strings.Builder, command *cli.Command) {
	b.WriteString(command.HelpName)
	below := commandsBelow(command)
	switch doesItself := slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return f.Names()[0] != "help" }); {
	case len(below) == 0:
	case doesItself:
		b.WriteString(" [COMMAND]")
	default:
		b.WriteString(" COMMAND")
	}
	if len(command.VisibleFlags()) > 0 {
		b.WriteString(" [OPTION…]")
	}
	if command.ArgsUsage != "" {
		b.WriteString(" " + command.ArgsUsage)
	}
	b.WriteString("\n\n" + wrapped(command.Usage, 0) + "\n")
	if command.Description != "" {
		b.WriteString("\n" + wrapped(command.Description, 0) + "\n")
	}
	if command.UsageText != "" {
		b.WriteString("\nExamples\n")
		for line := range strings.Lines(command.UsageText) {
			b.WriteString("  " + line)
		}
	}
	for i, sub := range below {
		if i == 0 {
			b.WriteString("\nCommands\n")
		}
		row(b, appColumn, sub.Name, sub.Usage)
	}
	for i, flag := range command.VisibleFlags() {
		if i == 0 {
			b.WriteString("\nOptions\n")
		}
		option(b, flag)
	}
}

// commandsBelow are those of a command, without the library's own.
func commandsBelow(command *cli.Command) []*cli.Command {
	return slices.DeleteFunc(command.VisibleCommands(), func(sub *cli.Command) bool { return sub.Name == "help" })
}

// option is a row about a flag: how it is typed, what it does, its default and its variable.
func option(b *strings.Builder, flag cli.Flag) {
	short, long := "    ", ""
	for _, name := range flag.Names() {
		if len(name) == 1 {
			short = "-" + name + ", "
		} else if long == "" {
			long = "--" + name
		}
	}
	word, usage := described(flag)
	if documented(flag).TakesValue() {
		long += " " + word
	}
	row(b, 25, short+long, usage)
}

// documented is a flag with what is said about it, as every one of the library's has.
func documented(flag cli.Flag) cli.DocGenerationFlag { return flag.(cli.DocGenerationFlag) }

// described is the word for a flag's value, and what the flag does, with its default, unless that is told in words, and its variable.
func described(flag cli.Flag) (word, usage string) {
	f := documented(flag)
	word, usage = placeholder(f.GetUsage())
	if value := strings.Trim(f.GetValue(), `"`); f.TakesValue() && value != "" && value != "[]" && !strings.Contains(usage, "(default: ") {
		usage += " (default: " + value + ")"
	}
	if names := f.GetEnvVars(); len(names) > 0 {
		usage += " [$" + strings.Join(names, ", $") + "]"
	}
	return cmp.Or(word, "VALUE"), usage
}

// placeholder is the word in backquotes of a flag's usage, which stands for its value, and the usage without the quotes.
func placeholder(usage string) (word, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	word, after, closed := strings.Cut(rest, "`")
	if !ok || !closed {
		return "", usage
	}
	return word, before + word + after
}

// row is a name and, from a column on, what it is.
func row(b *strings.Builder, column int, name, text string) {
	b.WriteString("  " + name)
	if n := utf8.RuneCountInString(name); n+2 <= column {
		b.WriteString(strings.Repeat(" ", column-n))
	} else {
		b.WriteString("\n" + strings.Repeat(" ", column+2))
	}
	b.WriteString(wrapped(text, column+2) + "\n")
}

// wrapped breaks text, which begins in a column, into lines that fit.
func wrapped(text string, column int) string { return report.Hang(text, column, helpWidth) }
