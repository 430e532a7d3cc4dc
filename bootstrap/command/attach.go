package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/look"
)

// Attach is kgpu attach.
func Attach() *cli.Command {
	return &cli.Command{
		Name: "attach", Usage: "show the run that is at work on the cluster; changes nothing", ArgsUsage: inventoryArgument,
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags), Action: attach,
	}
}

func attach(c *cli.Context) error {
	return story(c, func(o bootstrap.Options, t *terminal) (err error) {
		t.ended, err = look.Attach(c.Context, o.Options)
		return err
	})
}
