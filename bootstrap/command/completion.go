package command

import (
	"embed"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

//go:embed shells
var shells embed.FS

var shellNames = []string{"bash", "zsh", "fish"}

// Completion is kgpu completion.
func Completion() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that completes commands, hosts, steps, reasons", ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish. No host is contacted when something is completed: hosts are those of the inventory.",
		Action:      completion,
	}
}

func completion(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("for which shell? kgpu completion bash, zsh or fish")
	}
	shell := c.Args().First()
	text, err := shells.ReadFile("shells/completion." + shell)
	if err != nil {
		return usagef("no completion for %q.%s There are bash, zsh and fish", shell, nearest.Hint(shell, shellNames))
	}
	_, err = c.App.Writer.Write(text)
	return err
}
