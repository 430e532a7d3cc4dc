package command

import (
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
)

// newestRuns is how many runs a person wants to see.
const newestRuns = 20

// Runs is kgpu runs.
func Runs() *cli.Command {
	return &cli.Command{
		Name: "runs", Usage: "list the runs of this user on this machine, of all clusters, the newest first",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "cluster", Usage: "only the runs of the cluster of this `NAME`"},
			&cli.BoolFlag{Name: "all", Usage: "list all that are kept, not only the newest 20; --output json always does"},
		}, formatFlags...),
		Action: runs,
	}
}

func runs(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("kgpu runs takes no arguments: narrow by --cluster NAME, or look into a run with kgpu logs RUN")
	}
	format := c.String("output")
	if format != "text" && format != "json" {
		return usagef("--output is text or json, not %q", format)
	}
	most := newestRuns
	if c.Bool("all") {
		most = 0
	}
	return bootstrap.Runs(c.App.Writer, c.String("cluster"), most, format == "json", time.Now())
}
