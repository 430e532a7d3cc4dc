package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// Up is kgpu up.
func Up() *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "make the cluster of the inventory, or carry on where a run stopped", ArgsUsage: "[INVENTORY]",
		Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags, kubeconfigFlags, yesFlags), Action: up,
	}
}

func up(c *cli.Context) error {
	return story(c, 1, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.Up(c.Context, o, t.showPlan)
	})
}
