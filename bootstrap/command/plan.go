package command

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Plan is kgpu plan.
func Plan() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "say what up would do and why; exit status 2 when changes are pending", ArgsUsage: inventoryArgument,
		Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags), Action: showPlan,
	}
}

// errPending is plan's answer that there is something to do.
var errPending = errors.New("changes are pending")

func showPlan(c *cli.Context) error {
	return story(c, func(o bootstrap.Options, t *terminal) error {
		if t.kind == report.JSON {
			o.Events = event.Discard // the answer is one object
		}
		if err := t.showUses(o.Inventory); err != nil {
			return err
		}
		g, err := bootstrap.Plan(c.Context, o)
		if err != nil {
			return err
		}
		if err := report.PrintPlan(c.App.Writer, plan.WithProof(g), report.PlanOptions{JSON: t.kind == report.JSON, Verbose: c.Bool("verbose")}); err != nil {
			return err
		}
		if !g.Empty() {
			return errPending
		}
		return nil
	})
}
