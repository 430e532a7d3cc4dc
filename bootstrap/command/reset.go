package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/plan"
)

// Reset is kgpu reset.
func Reset() *cli.Command {
	return &cli.Command{
		Name: "reset", Usage: "take hosts or the whole cluster apart, and undo what kgpu changed", ArgsUsage: "[HOST…]",
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: reset,
	}
}

func reset(c *cli.Context) error {
	if err := noFiles(c, "-i"); err != nil {
		return err
	}
	return story(c, 0, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.Reset(c.Context, o, c.Args().Slice(), func(g *plan.Graph) error {
			if err := t.showPlan(g); err != nil || g.Empty() || c.Bool("yes") {
				return err
			}
			return confirm(c, "This takes the cluster's hosts apart.", o.Inventory.Cluster)
		})
	})
}
