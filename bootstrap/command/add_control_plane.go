package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// AddControlPlane is kgpu add-control-plane.
func AddControlPlane() *cli.Command {
	return &cli.Command{
		Name: "add-control-plane", Usage: "add control planes to the inventory and to the cluster", ArgsUsage: "[USER@]ADDRESS[:PORT]…",
		Description: "There are three then, or five: from one to three, both are added at once. The inventory has a `virtualIP`, or a\n" +
			"`controlPlaneEndpoint`, which the cluster was made with. docs/operations.md, \"Several control planes\", says more.",
		Flags: slices.Concat(inventoryFlags, wayFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: addControlPlane,
	}
}

func addControlPlane(c *cli.Context) error {
	hosts, err := targets(c) // before the story: a typing error is no run
	if err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.AddControlPlane(c.Context, o, hosts, way(c), t.showPlan)
	})
}
