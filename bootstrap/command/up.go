package command

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// Up is kgpu up.
func Up() *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "make the cluster of the inventory, or carry on where a run stopped", ArgsUsage: inventoryArgument,
		Description: "Shows the plan and carries it out. It asks only before pods that run have to leave a node. Ctrl-C stops it: what the\n" +
			"hosts have begun goes on there, and the same command carries on with the rest. `kgpu reset` takes all of it back.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags, kubeconfigFlags, yesFlags), Action: up,
	}
}

// checkKubeconfig finds before a long run that its end could not write the kubeconfig.
func checkKubeconfig(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("--kubeconfig %s is a folder: name the file in it", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usagef("--kubeconfig %s: there is no folder %s", path, filepath.Dir(path))
	}
	return nil
}

func up(c *cli.Context) error {
	return story(c, func(o bootstrap.Options, t *terminal) error {
		if err := t.showUses(o.Inventory); err != nil {
			return err
		}
		return bootstrap.Up(c.Context, o, t.showPlan)
	})
}
