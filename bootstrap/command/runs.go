package command

import (
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/nearest"
	"kgpu.dev/kgpu/bootstrap/records"
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
	if err := noArguments(c); err != nil {
		return err
	}
	json, err := wantsJSON(c)
	if err != nil {
		return err
	}
	most := newestRuns
	if c.Bool("all") {
		most = 0
	}
	return records.Runs(c.App.Writer, c.String("cluster"), most, json, time.Now())
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
