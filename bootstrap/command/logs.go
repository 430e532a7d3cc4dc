package command

import (
	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/records"
)

// runLogs is kgpu runs logs.
func runLogs() *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print what the steps of a run printed: of the last run in which any began, or of the one whose ID begins so", ArgsUsage: "[RUN|last [HOST [STEP]]]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "failed", Usage: "only the steps that failed"},
		},
		Action: logs,
	}
}

func logs(c *cli.Context) error {
	if c.NArg() > 3 {
		return usagef("a run, a host and a step, not %q", c.Args().Slice())
	}
	return records.Logs(c.App.Writer, c.Args().Get(0), c.Args().Get(1), c.Args().Get(2), c.Bool("failed"))
}
