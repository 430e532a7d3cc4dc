package command

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/inventory"
)

// terminal is where a story shows itself.
type terminal struct {
	report.Sink
	out      io.Writer
	kind     report.Kind
	detail   report.Detail
	stopped  *interruption
	notebook *bootstrap.Notebook // that was opened; nil: none
	ended    string              // how the story ended, where it says so itself
}

// Emit shows e.
func (t *terminal) Emit(e event.Event) {
	t.stopped.note(e)
	t.Sink.Emit(e)
}

// open sets up what events are shown by: a picture where a person looks at a terminal and wants to see more than errors.
// What is printed and asked meanwhile goes through it.
func (t *terminal) open(c *cli.Context) (restore func()) {
	t.stopped = &interruption{errs: c.App.ErrWriter, atWork: map[event.Ref]bool{}}
	out, in := c.App.Writer, c.App.Reader
	answers := &answers{Reader: in, over: c.Context.Done()}
	if t.kind == report.Terminal && t.detail != report.Quiet && out == os.Stdout && c.Command.Name != "plan" {
		view := report.NewView(os.Stdout, t.detail)
		t.Sink, t.out, t.stopped.view, answers.view = view, view, view, view
	} else {
		t.Sink = report.New(t.kind, out, t.detail)
	}
	c.App.Writer, c.App.Reader = t.out, answers
	told.Store(t.stopped)
	return func() {
		told.Store(nil)
		c.App.Writer, c.App.Reader = out, in
	}
}

// showNotebook prints how to get into the notebook, with its token: never among events, which are kept.
func (t *terminal) showNotebook(c *cli.Context, inv *inventory.Inventory) error {
	if t.notebook == nil || t.kind == report.JSON {
		return nil
	}
	tunnel := ""
	if port := t.notebook.Tunnel; port != 0 {
		words := []string{"kgpu", "notebook", "--inventory", inv.Path, "--port", strconv.Itoa(port)}
		if c.IsSet("ssh-config") {
			words = append(words, "--ssh-config", c.String("ssh-config"))
		}
		tunnel = shellLine(words)
	}
	return report.PrintNotebook(t.out, t.notebook.Devices.Names, t.notebook.URL, tunnel)
}

// showPlan prints what is about to happen; a stream of JSON events tells it by its steps.
func (t *terminal) showPlan(g *plan.Graph) error {
	if t.kind == report.JSON || t.detail == report.Quiet {
		return nil
	}
	return report.PrintPlan(t.out, g, report.PlanOptions{Verbose: t.detail == report.Verbose})
}

// story loads the inventory, sets up the report and tells a command's story. An inventory may be the command's only
// argument where positional is 1.
func story(c *cli.Context, positional int, tell func(bootstrap.Options, *terminal) error) error {
	inv, err := load(c, positional)
	if err != nil {
		return err
	}
	for _, id := range c.StringSlice("ignore") {
		if !reason.Known(reason.ID(id)) {
			return usagef("--ignore %s: there is no such reason; preflight prints them in brackets", id)
		}
	}
	if c.IsSet("max-unavailable") && c.Int("max-unavailable") < 1 {
		return usagef("--max-unavailable is at least 1, not %d", c.Int("max-unavailable"))
	}
	t := &terminal{out: c.App.Writer, kind: report.Detect(os.Stdout)}
	switch c.String("output") {
	case "text":
	case "json":
		t.kind = report.JSON
	default:
		return usagef("--output is text or json, not %q", c.String("output"))
	}
	switch {
	case c.Bool("verbose"):
		t.detail = report.Verbose
	case c.Bool("quiet"):
		t.detail = report.Quiet
	}
	defer t.open(c)()
	id := bootstrap.NewRunID(time.Now())
	ended := record(c, inv, id, t)
	if c.Command.Name != "plan" {
		t.Emit(event.Event{Time: time.Now(), Run: id, Kind: event.Begin, Schema: event.Schema, Text: commandLine(c)})
	}
	err = tell(bootstrap.Options{
		Inventory: inv, Run: id, Events: t, SSHConfig: c.String("ssh-config"), Ignore: c.StringSlice("ignore"),
		Only: c.StringSlice("only"), Skip: c.StringSlice("skip"), Limit: c.StringSlice("limit"), Kubeconfig: c.String("kubeconfig"), Command: commandLine(c), Adopt: c.Bool("adopt"), MaxUnavailable: c.Int("max-unavailable"),
		Opened: func(n bootstrap.Notebook) { t.notebook = &n },
		Agree:  func(d []bootstrap.Disturbance) error { return t.agree(c, d) },
	}, t)
	if t.kind == report.JSON {
		t.failures(id, err)
	}
	if c.Command.Name != "plan" {
		t.Emit(event.Event{Time: time.Now(), Run: id, Kind: event.Result, Reason: outcome(err), Text: cmp.Or(t.ended, next(c, inv, err))})
	}
	ended(err)
	return errors.Join(err, t.showNotebook(c, inv), t.Close())
}

// failures puts what failed outside of steps into the stream of events; text has it on standard error.
func (t *terminal) failures(id string, err error) {
	for _, e := range reason.All(err) {
		if e.Step == "" {
			t.Emit(event.Event{Time: time.Now(), Run: id, Host: e.Host, Kind: event.Error, Reason: string(e.ID), Text: e.Error()})
		}
	}
}

// outcome is the result's reason: ok, or the ID of the failure, or the first of several.
func outcome(err error) string {
	var usage *bootstrap.UsageError
	if all := reason.All(err); len(all) > 0 {
		return string(all[0].ID)
	}
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &usage):
		return "USAGE"
	}
	return "INTERNAL"
}

// load reads the inventory: the positional argument, --inventory, $KGPU_INVENTORY or ./inventory.yaml.
func load(c *cli.Context, positional int) (*inventory.Inventory, error) {
	path := c.String("inventory")
	if positional == 1 {
		if c.NArg() > 1 {
			return nil, usagef("one inventory at a time, not %d: %q", c.NArg(), c.Args().Slice())
		}
		if c.NArg() == 1 {
			path = c.Args().First()
		}
	}
	inv, err := inventory.Load(path, inventory.Options{})
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("there is no inventory %s: `kgpu init ADDRESS…` looks at your hosts and writes one, or name yours: kgpu %s -i FILE", filepath.Clean(path), c.Command.Name)
	}
	return inv, err
}
