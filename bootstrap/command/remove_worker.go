package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// RemoveWorker is kgpu remove-worker.
func RemoveWorker() *cli.Command {
	return &cli.Command{
		Name: "remove-worker", Usage: "take hosts out of the cluster and the inventory, and undo what kgpu changed on them", ArgsUsage: "HOST…",
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, forceFlags, yesFlags), Action: removeWorker,
	}
}

var forceFlags = []cli.Flag{
	&cli.BoolFlag{Name: "force", Usage: "go on without hosts that cannot be reached: their nodes and inventory entries go, the hosts stay as they are"},
}

// RemoveControlPlane is kgpu remove-control-plane.
func RemoveControlPlane() *cli.Command {
	return &cli.Command{
		Name: "remove-control-plane", Usage: "take control planes out of the cluster and the inventory", ArgsUsage: "HOST…",
		Description: "One or three stay: from three to one, two leave at once. One that is lost for good goes with --force; a machine that\n" +
			"takes its place needs none of this. docs/operations.md, \"Several control planes\", says more.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, forceFlags, yesFlags), Action: removeControlPlane,
	}
}

func removeWorker(c *cli.Context) error { return remove(c, bootstrap.RemoveWorker) }

func removeControlPlane(c *cli.Context) error { return remove(c, bootstrap.RemoveControlPlane) }

func remove(c *cli.Context, leave func(context.Context, bootstrap.Options, bootstrap.Removal) error) error {
	if !c.Args().Present() {
		return usagef("which host? kgpu %s HOST…", c.Command.Name)
	}
	if err := noFiles(c); err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return leave(c.Context, o, bootstrap.Removal{
			Names: c.Args().Slice(), Force: c.Bool("force"), Show: t.showPlan,
			Sure: func() error {
				what := fmt.Sprintf("This takes %s out of the cluster %s and the inventory, and undoes what kgpu changed there.", strings.Join(c.Args().Slice(), ", "), o.Inventory.Cluster)
				return t.confirm(c, what, "yes")
			},
		})
	})
}
