package command

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/inventory"
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
	_, err = fmt.Fprintf(c.App.Writer, "%s is valid: cluster %s, Kubernetes %s, %s\n", inv.Path, inv.Cluster, versionOf(inv.Kubernetes), plural.Of(len(inv.Hosts), "host"))
	return err
}

// versionOf says which version a cluster has, or gets.
func versionOf(k inventory.Kubernetes) string {
	switch k.Pin {
	case inventory.PinnedExact:
		return k.Version.String()
	case inventory.PinnedMinor:
		return k.Version.MinorString() + " (" + k.Version.String() + " for a new cluster)"
	}
	return "as the cluster has it (" + k.Version.String() + " for a new one)"
}
