package command

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"
)

// App is kgpu with these groups of commands.
func App(version string, groups ...[]*cli.Command) *cli.App {
	app := &cli.App{
		Name: "kgpu", Version: version,
		Usage:                "a Kubernetes cluster that runs GPU work, out of bare machines",
		EnableBashCompletion: true,
		HideHelpCommand:      true,
		Suggest:              true,
		ErrWriter:            os.Stderr,
		ExitErrHandler:       func(*cli.Context, error) {}, // run prints errors and chooses the exit status
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("no command %q. %s (kgpu --help lists them)", c.Args().First(), cli.SuggestCommand(c.App.Commands, c.Args().First()))
			}
			return cli.ShowAppHelp(c)
		},
		Commands: slices.Concat(groups...),
	}
	for _, command := range app.Commands {
		for _, c := range append(command.Subcommands, command) {
			c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usagef("%v", err) }
		}
	}
	app.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usagef("%v", err) }
	return app
}

// Group puts commands under the title under which --help lists them.
func Group(title string, commands ...*cli.Command) []*cli.Command {
	for _, command := range commands {
		command.Category = title
	}
	return commands
}
