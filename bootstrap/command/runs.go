package command

import (
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/records"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// newestRuns is how many runs a person wants to see.
const newestRuns = 20

// Runs is kgpu runs, which alone lists, and the commands below it.
func Runs() *cli.Command {
	list := &cli.Command{
		Name: "list", Usage: "list the runs of this user on this machine, of all clusters, the newest first",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "cluster", Usage: "only the runs of the cluster of this `NAME`"},
			&cli.BoolFlag{Name: "all", Usage: "list all that are kept, not only the newest 20; --output json always does"},
		}, formatFlags...),
		Action: listRuns,
	}
	return &cli.Command{
		Name: "runs", Usage: list.Usage + "; or look into one", Flags: list.Flags,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				word := c.Args().First()
				return usagef("no command %q.%s kgpu runs has list, show, logs and timeline; `kgpu runs show RUN` tells of one run", word,
					nearest.Hint(word, []string{"list", "show", "logs", "timeline"}))
			}
			return listRuns(c)
		},
		Subcommands: []*cli.Command{
			list,
			{
				Name: "show", Usage: "say what a run was and how it ended: the last one in which any step began, or the one whose ID begins so", ArgsUsage: "[RUN|last]",
				Action: showRun,
			},
			runLogs(),
			runTimeline(),
		},
	}
}

// FormerNames are commands as they were called before they came below another: they go with the release after this one.
func FormerNames() []*cli.Command {
	commands := []*cli.Command{runLogs(), runTimeline()}
	for _, c := range commands {
		c.Hidden, c.UsageText = true, exampleLines("kgpu runs "+c.Name)
	}
	return commands
}

func listRuns(c *cli.Context) error {
	most := newestRuns
	if c.Bool("all") {
		most = 0
	}
	return records.Runs(c.App.Writer, c.String("cluster"), most, inJSON(c), time.Now())
}

func showRun(c *cli.Context) error {
	if err := oneRun(c); err != nil {
		return err
	}
	return records.Show(c.App.Writer, c.Args().First(), time.Now())
}

func oneRun(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("one run at a time, not %d: %q", c.NArg(), c.Args().Slice())
	}
	return nil
}

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
