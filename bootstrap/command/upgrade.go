package command

import (
	"cmp"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Upgrade is kgpu upgrade.
func Upgrade() *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "bring the cluster to another version of Kubernetes, node after node", ArgsUsage: "[VERSION]",
		Description: "Writes kubernetes.version into the inventory and does what `kgpu up` does then. VERSION is a minor one, such as 1.37, or an exact\n" +
			"one, such as 1.37.2. It asks before pods that run have to leave a node. If it is stopped, `kgpu up` carries on. --check\n" +
			"changes nothing.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags, kubeconfigFlags, yesFlags, []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "only say what of the APIs that the cluster's clients use goes away, and how long each node took the last time"},
		}), Action: upgrade,
	}
}

func upgrade(c *cli.Context) error {
	version := c.Args().First()
	switch {
	case c.NArg() > 1:
		return usagef("one version at a time, not %d: %q", c.NArg(), c.Args().Slice())
	case version == "" && !c.Bool("check"):
		return usagef("which version? kgpu upgrade VERSION, such as kgpu upgrade %s", catalog.Default)
	}
	if _, err := catalog.Resolve(cmp.Or(version, catalog.Default)); err != nil {
		return usagef("%v", err)
	}
	if c.Bool("check") {
		return standardError(c, report.Normal, func(o session.Options) error {
			check, err := look.CheckUpgrade(c.Context, o, version)
			if err != nil {
				return err
			}
			return report.PrintUpgradeCheck(c.App.Writer, check)
		})
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		if err := t.showUses(o.Inventory); err != nil {
			return err
		}
		return bootstrap.Upgrade(c.Context, o, version, t.showPlan)
	})
}
