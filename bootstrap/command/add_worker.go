package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// AddWorker is kgpu add-worker.
func AddWorker() *cli.Command {
	return &cli.Command{
		Name: "add-worker", Usage: "add hosts to the inventory and to the cluster", ArgsUsage: "[USER@]ADDRESS[:PORT]…",
		Description: "The inventory gets each host with the name of its node, which is the machine's own: the other commands know it by that.\n" +
			"`kgpu remove-worker HOST` undoes it.",
		Flags: slices.Concat(inventoryFlags, wayFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: addWorker,
	}
}

func addWorker(c *cli.Context) error {
	hosts, err := targets(c) // before the story: a typing error is no run
	if err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.AddWorker(c.Context, o, hosts, way(c), t.showPlan)
	})
}
