package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// Render is kgpu render.
func Render() *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "write what up would do as scripts, configurations and manifests for each host, to be run by hand; changes no host", ArgsUsage: inventoryArgument,
		Description: "README.md in the folder says what to run where. Where the hosts have all of it already, nothing is written: --assume\n" +
			"writes what fresh machines need.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, renderFlags, outputFlags), Action: render,
	}
}

var renderFlags = []cli.Flag{
	&cli.StringFlag{Name: "out", Usage: "the `FOLDER` to write: new, empty, or one that was written so before", TakesFile: true},
	&cli.StringFlag{Name: "assume", Usage: "contact no host: take all for fresh machines of this `RELEASE`, without cards: " + bootstrap.Releases()},
	&cli.StringSliceFlag{Name: "limit", Usage: "only this `HOST` and the control planes (may be repeated)"},
}

func render(c *cli.Context) error {
	if c.String("out") == "" {
		return usagef("where to? kgpu render --out FOLDER")
	}
	return story(c, func(o bootstrap.Options, t *terminal) (err error) {
		t.ended, err = bootstrap.Render(c.Context, o, c.String("out"), c.String("assume"))
		return err
	})
}
