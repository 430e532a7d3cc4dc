package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// Reset is kgpu reset.
func Reset() *cli.Command {
	return &cli.Command{
		Name: "reset", Usage: "take hosts or the whole cluster apart, and undo what kgpu changed", ArgsUsage: "[HOST…]",
		Description: "Without HOST it is the whole cluster, with what is stored in it, and the kubeconfig beside the inventory. It asks for the\n" +
			"cluster's name first. The inventory stays: `kgpu up` makes the cluster anew.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: reset,
	}
}

func reset(c *cli.Context) error {
	if err := noFiles(c); err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.Reset(c.Context, o, c.Args().Slice(), func(g *graph.Graph) error {
			if err := t.showPlan(g); err != nil || g.Empty() {
				return err
			}
			return t.confirm(c, apart(o.Inventory, c.Args().Slice()), o.Inventory.Cluster)
		})
	})
}

// apart says what a reset of these hosts, or of all, takes away.
func apart(inv *inventory.Inventory, names []string) string {
	if len(names) > 0 {
		return fmt.Sprintf("This takes %s out of the cluster %s, ends what runs there, and undoes what kgpu changed there.", strings.Join(names, ", "), inv.Cluster)
	}
	hosts := fmt.Sprintf("all its %d hosts", len(inv.Hosts))
	if len(inv.Hosts) == 1 {
		hosts = "its host"
	}
	return fmt.Sprintf("This takes the cluster %s and %s apart: what runs in it ends, and what it keeps is lost.", inv.Cluster, hosts)
}
