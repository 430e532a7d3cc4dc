package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Doctor is kgpu doctor.
func Doctor() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "find out what is wrong with hosts and their cards, and repair what can be repaired safely", ArgsUsage: "[HOST…]",
		Description: "Looks at all hosts at the same time, and changes nothing without --fix. Exit status: 0, nothing was found; 1, something does not\n" +
			"work; 2, there are warnings only. A host that cannot be reached is an error. While kgpu is at work on the cluster it says\n" +
			"so, and looks for nothing else. `--ignore ID` leaves a finding out.\n\n" +
			"--fix asks before it does anything (--yes does not): it starts units that are down, loads the driver's modules, restarts a\n" +
			"node's device plugin and holds packages again; a node whose card is lost or whose driver hangs is cordoned, drained and\n" +
			"rebooted; what is left for `kgpu up` it says. Then it looks again.\n\n" +
			"--install-watch puts a check of the cards on the nodes that have some: each minute it sets the condition GPUHealthy of the\n" +
			"node. `kgpu reset` removes it.",
		Flags: slices.Concat(inventoryFlags, connectionFlags, formatFlags, yesFlags, doctorFlags), Action: examine,
	}
}

var doctorFlags = []cli.Flag{
	&cli.BoolFlag{Name: "fix", Usage: "repair what can be repaired safely, after asking"},
	&cli.BoolFlag{Name: "install-watch", Usage: "check the cards on the nodes themselves, every minute"},
	unavailableFlag,
}

// Doctor's answers that something was found.
var (
	errFound  = errors.New("something does not work")
	errWarned = errors.New("there are warnings")
)

func examine(c *cli.Context) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	asJSON := inJSON(c)
	if err := checkDoctor(c, asJSON); err != nil {
		return err
	}
	out, kind := c.App.Writer, report.Detect(os.Stdout)
	if asJSON {
		out, kind = c.App.ErrWriter, report.Plain // the answer is one object
	}
	progress := report.New(kind, out, report.Normal)
	o, names := options(c, inv, event.Discard), c.Args().Slice()
	if c.Bool("install-watch") {
		show := func(g *graph.Graph) error { return report.PrintPlan(out, g, report.PlanOptions{}) }
		return acting(c, &o, progress, func() error { return bootstrap.InstallWatch(c.Context, o, names, show) })
	}
	d, err := look.Doctor(c.Context, o.Options, names, o.Ignore)
	if err != nil {
		return err
	}
	if c.Bool("fix") && len(d.Findings()) > 0 {
		if !asJSON {
			if err := report.PrintDiagnosis(out, d); err != nil {
				return err
			}
		}
		done := false
		err := acting(c, &o, progress, func() (err error) {
			done, err = fix(c, o, names, report.On(out))
			return err
		})
		if err != nil {
			return err
		}
		if !done && !asJSON {
			return verdict(d)
		}
		if done {
			o.Events = event.Discard
			if d, err = look.Doctor(c.Context, o.Options, names, o.Ignore); err != nil {
				return err
			}
		}
	}
	print := report.PrintDiagnosis
	if asJSON {
		print = report.DiagnosisJSON
	}
	if err := print(c.App.Writer, d); err != nil {
		return err
	}
	return verdict(d)
}

// checkDoctor refuses options that do not go together, or say nothing.
func checkDoctor(c *cli.Context, asJSON bool) error {
	switch {
	case c.Bool("fix") && c.Bool("install-watch"):
		return usagef("--fix and --install-watch are two things: one after the other")
	case asJSON && c.Bool("install-watch"):
		return usagef("--install-watch finds nothing out: it has no --output json")
	case asJSON && c.Bool("fix") && !c.Bool("yes"):
		return usagef("--fix asks, and --output json cannot: --yes agrees")
	}
	for _, id := range c.StringSlice("ignore") {
		if !doctor.Known(id) {
			return usagef("--ignore %s: no finding is called so", id)
		}
	}
	return nil
}

// acting lets what do runs on hosts be shown, leave a folder, and be interrupted as other stories are.
func acting(c *cli.Context, o *bootstrap.Options, progress report.Sink, do func() error) error {
	t := &terminal{Sink: progress, stopped: &interruption{errs: c.App.ErrWriter, atWork: map[event.Ref]bool{}}}
	recorded := record(c, o.Inventory, o.Run, t)
	told.Store(t.stopped)
	o.Events = t
	t.Emit(event.Event{Time: time.Now(), Run: o.Run, Kind: event.Begin, Schema: event.Schema, Text: commandLine(c)})
	err := do()
	told.Store(nil)
	t.failures(o.Run, err)
	t.unseen().Emit(event.Event{Time: time.Now(), Run: o.Run, Kind: event.Result, Reason: outcome(err)})
	recorded(err)
	return errors.Join(err, progress.Close())
}

// verdict is the answer in the exit status.
func verdict(d *report.Diagnosis) error {
	switch failures, warnings := doctor.Count(d.Findings()); {
	case failures > 0:
		return errFound
	case warnings > 0:
		return errWarned
	}
	return nil
}

// fix repairs, and reports whether anything was done.
func fix(c *cli.Context, o bootstrap.Options, names []string, out io.Writer) (done bool, err error) {
	asked, in := false, &answers{Reader: c.App.Reader, over: c.Context.Done()}
	up, err := bootstrap.Fix(c.Context, o, names, func(m bootstrap.Mended) (bool, error) {
		asked = true
		what := "This repairs, and disturbs no pods:"
		if m.Reboot {
			what = "This drains nodes and reboots hosts:"
		}
		fmt.Fprintf(out, "\n%s\n%s\n", what, m.Text)
		if !c.Bool("yes") {
			fmt.Fprint(out, "Type yes to do it: ")
			if answer, err := answer(in); err != nil || answer != "yes" || c.Context.Err() != nil {
				fmt.Fprintln(out, "not confirmed, nothing of this was done")
				return false, context.Cause(c.Context)
			}
		}
		done = true
		return true, nil
	})
	switch {
	case err != nil:
	case up:
		fmt.Fprintf(out, "The rest is for `kgpu up %s`.\n", o.Inventory.Path)
	case !asked:
		fmt.Fprintln(out, "Nothing of this is repaired by --fix: each finding says what to do.")
	}
	return done, err
}
