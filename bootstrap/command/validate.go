package command

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// Validate is kgpu validate.
func Validate() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check the inventory without touching any host", ArgsUsage: inventoryArgument,
		Flags: inventoryFlags, Action: validate,
	}
}

func validate(c *cli.Context) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(report.On(c.App.Writer), "%s is valid: cluster %s, Kubernetes %s, %s\n", inv.Path, inv.Cluster, versionOf(inv.Kubernetes), plural.Of(len(inv.Hosts), "host"))
	return err
}

// versionOf says which version a cluster has, or gets.
func versionOf(k inventory.Kubernetes) string {
	newest := "the newest " + k.Version.MinorString() + " that its hosts' repositories have"
	if m, ok := catalog.Kubernetes(k.Version.Minor); ok && !m.Published() {
		newest = k.Version.String()
	}
	switch k.Pin {
	case inventory.PinnedExact:
		return k.Version.String()
	case inventory.PinnedMinor:
		return k.Version.MinorString() + " (a new cluster gets " + newest + ")"
	}
	return "as the cluster has it (a new one gets " + newest + ")"
}
