package command

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/plural"
)

// Validate is kgpu validate.
func Validate() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check the inventory without touching any host", ArgsUsage: "[INVENTORY]",
		Flags: inventoryFlags, Action: validate,
	}
}

func validate(c *cli.Context) error {
	inv, err := load(c, 1)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s is valid: cluster %s, Kubernetes %s, %s\n", inv.Path, inv.Cluster, inv.Kubernetes.Version, plural.Of(len(inv.Hosts), "host"))
	return err
}
