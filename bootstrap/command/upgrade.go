package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/catalog"
)

// Upgrade is kgpu upgrade.
func Upgrade() *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "bring the cluster to another version of Kubernetes, node after node", ArgsUsage: "VERSION",
		Description: "Writes kubernetes.version into the inventory and does what `kgpu up` does then. VERSION is a minor one, such as 1.37, or an exact\n" +
			"one, such as 1.37.2. It asks before pods that run have to leave a node. If it is stopped, `kgpu up` carries on.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags, kubeconfigFlags, yesFlags), Action: upgrade,
	}
}

func upgrade(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("which version? kgpu upgrade VERSION, such as kgpu upgrade %s", catalog.Default)
	}
	version := c.Args().First()
	if _, err := catalog.Resolve(version); err != nil {
		return usagef("%v", err)
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		if err := t.showUses(o.Inventory); err != nil {
			return err
		}
		return bootstrap.Upgrade(c.Context, o, version, t.showPlan)
	})
}
