package command

import (
	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/records"
)

// runTimeline is kgpu runs timeline.
func runTimeline() *cli.Command {
	return &cli.Command{
		Name: "timeline", Usage: "draw a run as a web page that works offline: hosts, steps, waits and the critical path", ArgsUsage: "[RUN|last|PATH]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "write the page to `FILE`, - for standard output (default: timeline.html in the run's folder)", TakesFile: true},
			&cli.BoolFlag{Name: "open", Usage: "open the page in the browser"},
			&cli.StringFlag{Name: "trace", Usage: "write a trace in the format of Chrome and Perfetto to `FILE` instead, - for standard output", TakesFile: true},
		},
		Action: timeline,
	}
}

func timeline(c *cli.Context) error {
	if err := oneRun(c); err != nil {
		return err
	}
	o := records.TimelineOptions{Run: c.Args().First(), Page: c.String("file"), Trace: c.String("trace"), Open: c.Bool("open"), Out: c.App.Writer}
	switch {
	case o.Trace != "" && (o.Page != "" || o.Open):
		return usagef("--trace goes with neither --file nor --open: one picture at a time")
	case o.Open && o.Page == "-":
		return usagef("--open wants a file, not standard output")
	}
	return records.Timeline(o)
}
