package command

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// App is kgpu with these groups of commands.
func App(version string, groups ...[]*cli.Command) *cli.App {
	app := &cli.App{
		Name: "kgpu", Version: version,
		Usage:           "a Kubernetes cluster that runs GPU work, out of bare machines",
		HideHelpCommand: true,
		Writer:          os.Stdout,
		ErrWriter:       os.Stderr,
		ExitErrHandler:  func(*cli.Context, error) {}, // run prints errors and chooses the exit status
		Action:          general,
		Commands:        slices.Concat(groups...),
	}
	cli.VersionPrinter = printVersion
	app.OnUsageError = misplaced(app)
	prepare(app.Commands, "kgpu")
	return app
}

// printVersion says which kgpu this is, and of when what it knows of the world is.
func printVersion(c *cli.Context) {
	_, _ = fmt.Fprintf(c.App.Writer, "%s version %s\ncatalog of %s\n", c.App.Name, c.App.Version, catalog.AsOf.Format(time.DateOnly))
}

// Group puts commands under the title under which --help lists them.
func Group(title string, commands ...*cli.Command) []*cli.Command {
	for _, command := range commands {
		command.Category = title
	}
	return commands
}

// prepare gives commands, and those below them, what all have: examples, and a word about wrong options and arguments.
func prepare(commands []*cli.Command, parent string) {
	for _, command := range commands {
		name := parent + " " + command.Name
		if command.UsageText == "" {
			command.UsageText = exampleLines(name)
		}
		if command.ArgsUsage == "" && len(command.Subcommands) == 0 {
			command.Before = noArguments
		}
		command.OnUsageError = usageError(name, &command.Flags)
		command.HideHelpCommand = len(command.Subcommands) == 0 // help, and h, may be the name of a host
		prepare(command.Subcommands, name)
	}
}

// general is kgpu without a command, or with one that is not there.
func general(c *cli.Context) error {
	word := c.Args().First()
	asked := word == "help"
	if asked {
		word = c.Args().Get(1)
	}
	switch {
	case word == "version":
		cli.ShowVersion(c)
		return nil
	case word != "" && !(asked && (word == "help" || asksForHelp(word))):
		return usagef("no command %q.%s (kgpu --help lists them)", word, cmp.Or(meant(word), nearest.Hint(word, commandNames(c.App.VisibleCommands()))))
	}
	if err := cli.ShowAppHelp(c); err != nil || asked {
		return err
	}
	return printFirstStep(c.App.Writer)
}

func commandNames(commands []*cli.Command) (names []string) {
	for _, command := range commands {
		names = append(names, command.Name)
	}
	return names
}
