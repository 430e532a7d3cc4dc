package command

import (
	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// Explain is kgpu explain.
func Explain() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say what a reason or an exit status means, and what to do", ArgsUsage: "[REASON]",
		Flags: formatFlags, Action: explain,
	}
}

func explain(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("one reason at a time, not %d: %q", c.NArg(), c.Args().Slice())
	}
	json, err := wantsJSON(c)
	if err != nil {
		return err
	}
	return bootstrap.Explain(c.App.Writer, c.Args().First(), json)
}
