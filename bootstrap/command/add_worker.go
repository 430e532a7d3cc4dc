package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// AddWorker is kgpu add-worker.
func AddWorker() *cli.Command {
	return &cli.Command{
		Name: "add-worker", Usage: "add hosts to the inventory and to the cluster", ArgsUsage: "ADDRESS…",
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: addWorker,
	}
}

func addWorker(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("which host? kgpu add-worker ADDRESS…")
	}
	if err := noFiles(c, "-i"); err != nil {
		return err
	}
	return story(c, 0, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.AddWorker(c.Context, o, c.Args().Slice(), t.showPlan)
	})
}
