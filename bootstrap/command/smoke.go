package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// Smoke is kgpu smoke.
func Smoke() *cli.Command {
	return &cli.Command{
		Name: "smoke", Usage: "prove every card with a pod, and list one from a notebook", ArgsUsage: inventoryArgument,
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags), Action: smoke,
	}
}

func smoke(c *cli.Context) error {
	return story(c, func(o bootstrap.Options, _ *terminal) error { return bootstrap.Smoke(c.Context, o) })
}
