package command

import (
	"net/netip"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

var virtualIPFlags = []cli.Flag{
	&cli.StringFlag{
		Name: "virtual-ip", Usage: "write `ADDRESS`, a free one of the control planes' subnet, into the inventory as kubernetes.virtualIP",
		Action: func(_ *cli.Context, address string) error {
			if _, err := netip.ParseAddr(address); err != nil {
				return usagef("--virtual-ip: %q is not an IP address", address)
			}
			return nil
		},
	},
}

// AddControlPlane is kgpu add-control-plane.
func AddControlPlane() *cli.Command {
	return &cli.Command{
		Name: "add-control-plane", Usage: "add control planes to the inventory and to the cluster", ArgsUsage: "[USER@]ADDRESS[:PORT]…",
		Description: "There are three then, or five: from one to three, both are added at once. The inventory has a `virtualIP`, which\n" +
			"--virtual-ip writes there, or the `controlPlaneEndpoint` that the cluster was made with. docs/operations.md, \"Several\n" +
			"control planes\", says more.",
		Flags: slices.Concat(inventoryFlags, virtualIPFlags, wayFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: addControlPlane,
	}
}

func addControlPlane(c *cli.Context) error {
	hosts, err := targets(c) // before the story: a typing error is no run
	if err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.AddControlPlane(c.Context, o, hosts, c.String("virtual-ip"), way(c), t.showPlan)
	})
}
