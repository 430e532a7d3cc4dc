package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/records"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// terminal is where a story shows itself.
type terminal struct {
	report.Sink
	out      io.Writer
	kind     report.Kind
	detail   report.Detail
	stopped  *interruption
	notebook *access.Notebook // that was opened; nil: none
	worked   atomic.Bool      // steps were done
	ended    string           // how the story ended, where it says so itself
}

// Emit shows e.
func (t *terminal) Emit(e event.Event) {
	t.stopped.note(e)
	if e.Kind == event.StepDone {
		t.worked.Store(true)
	}
	t.Sink.Emit(e)
}

// open sets up what events are shown by: a picture where a person looks at a terminal and wants to see more than errors.
// What is printed and asked meanwhile goes through it.
func (t *terminal) open(c *cli.Context) (restore func()) {
	t.stopped = &interruption{errs: c.App.ErrWriter, watches: c.Command.Name == "attach", atWork: map[event.Ref]bool{}}
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
	notebook := func(more ...string) string { return shellLine(append(sameCluster(c, inv, "notebook"), more...)) }
	return report.PrintNotebook(t.out, t.notebook.Devices.String(), t.notebook.URL,
		notebook("--port", strconv.Itoa(t.notebook.Tunnel)), notebook("--stop"), t.notebook.Port)
}

// showNext prints what a new cluster, or one that has changed, is good for. It needs no kubectl on this machine.
func (t *terminal) showNext(c *cli.Context, inv *inventory.Inventory, err error) error {
	if err != nil || c.Command.Name != "up" || !t.worked.Load() || t.kind == report.JSON || t.detail == report.Quiet {
		return nil
	}
	line := func(command string, more ...string) string { return onward(c, inv, command, more...) }
	next := [][2]string{{line("status"), "hosts, nodes, cards, and who uses them"}}
	if inv.Notebook.Framework != catalog.NoFramework {
		next = append(next, [2]string{line("notebook"), "Jupyter with a card, in your browser"})
	}
	job := "examples/workloads/nvidia-smi.yaml"
	if inv.Kubernetes.Version.Minor < 10 {
		job = "examples/workloads/kubernetes-1.6/nvidia-smi.yaml"
	}
	next = append(next, [2]string{line("kubectl", "--", "get", "nodes"), "needs no kubectl here"}, [2]string{line("kubectl", "--", "apply", "-f", "FILE"), "runs work of yours; one with a card is " + job})
	if _, err := fmt.Fprintln(t.out); err != nil {
		return err
	}
	return report.PrintNext(t.out, next)
}

// showPlan prints what is about to happen; a stream of JSON events tells it by its steps.
func (t *terminal) showPlan(g *graph.Graph) error {
	if t.kind == report.JSON || t.detail == report.Quiet {
		return nil
	}
	return report.PrintPlan(t.out, plan.WithProof(g), report.PlanOptions{Verbose: t.detail == report.Verbose, Told: true})
}

// showUses says, before there is a connection, what of this machine an inventory uses with which no run is recorded here. Who
// cannot be told what was recorded is told again.
func (t *terminal) showUses(inv *inventory.Inventory) error {
	if t.kind == report.JSON || t.detail == report.Quiet || records.Used(inv) {
		return nil
	}
	return report.PrintUses(t.out, inv.Path, inv.Uses())
}

// options are what the command line says to every story, as far as the command has such options.
func options(c *cli.Context, inv *inventory.Inventory, events event.Sink) bootstrap.Options {
	return bootstrap.Options{
		Options: session.Options{
			Inventory: inv, Run: session.NewRunID(time.Now()), Events: events, Command: commandLine(c), Trust: trust(c), SSHConfig: c.String("ssh-config"),
			Limit: c.StringSlice("limit"),
		},
		Kubeconfig: c.String("kubeconfig"), Ignore: c.StringSlice("ignore"), Only: c.StringSlice("only"), Skip: c.StringSlice("skip"),
		Adopt: c.Bool("adopt"), MaxUnavailable: c.Int("max-unavailable"), DrainTimeout: c.Duration("drain-timeout"), SkipBusy: c.Bool("skip-busy"),
	}
}

// standardError is where commands say what they do whose standard output is something else's, such as kubectl's.
func standardError(c *cli.Context, detail report.Detail, tell func(session.Options) error) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	events := report.New(report.Detect(os.Stderr), c.App.ErrWriter, detail)
	err = tell(options(c, inv, events).Options)
	return errors.Join(err, events.Close())
}

// story loads the inventory, sets up the report and tells a command's story.
func story(c *cli.Context, tell func(bootstrap.Options, *terminal) error) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	for _, id := range c.StringSlice("ignore") {
		if !reason.Known(reason.ID(id)) {
			return usagef("--ignore %s: there is no such reason; preflight prints them in brackets", id)
		}
	}
	if err := plan.Kinds.CheckPatterns(slices.Concat(c.StringSlice("only"), c.StringSlice("skip"))); err != nil {
		return err
	}
	if err := checkKubeconfig(c.String("kubeconfig")); err != nil {
		return err
	}
	t := &terminal{out: c.App.Writer, kind: report.Detect(os.Stdout)}
	if inJSON(c) {
		t.kind = report.JSON
	}
	switch {
	case c.Bool("verbose"):
		t.detail = report.Verbose
	case c.Bool("quiet"):
		t.detail = report.Quiet
	}
	defer t.open(c)()
	o := options(c, inv, t)
	o.Without = func(hosts []string) string { return onlyFor(c, inv, hosts) }
	o.Opened = func(n access.Notebook) { t.notebook = &n }
	o.Agree = func(d []session.Disruption) (bool, error) { return t.agree(c, d) }
	ended := record(c, inv, o.Run, t)
	if c.Command.Name != "plan" {
		t.Emit(event.Event{Time: time.Now(), Run: o.Run, Kind: event.Begin, Schema: event.Schema, Text: commandLine(c)})
	}
	err = tell(o, t)
	if c.Command.Name != "plan" {
		t.failures(o.Run, err)
		to := event.Sink(t)
		if outcome(err) == misused && t.ended == "" {
			to = t.unseen() // what is wrong with the command line is all there is to say
		}
		to.Emit(event.Event{Time: time.Now(), Run: o.Run, Kind: event.Result, Reason: outcome(err), Text: cmp.Or(t.ended, next(c, inv, err))})
	}
	ended(err)
	return errors.Join(err, t.showNotebook(c, inv), t.showNext(c, inv, err), t.Close())
}

// failures puts what failed outside of steps into the stream of events, and into the run's folder; text has it on standard
// error.
func (t *terminal) failures(id string, err error) {
	to := t.unseen()
	for _, e := range reason.All(err) {
		if e.Step == "" {
			text := strings.TrimSuffix(e.Error(), " ["+string(e.ID)+"]") // which every event has beside its text
			to.Emit(event.Event{Time: time.Now(), Run: id, Host: e.Host, Kind: event.Error, Reason: string(e.ID), Text: text})
		}
	}
}

// unseen hears what text has on standard error already: the stream of events, and the run's folder.
func (t *terminal) unseen() event.Sink {
	if t.kind == report.JSON {
		return t
	}
	if r, recorded := t.Sink.(recording); recorded {
		return r.recorder
	}
	return event.Discard
}

// misused is the outcome of a command line that cannot be carried out.
const misused = "USAGE"

// outcome is the result's reason: ok, or the ID of the failure, or the first of several.
func outcome(err error) string {
	all := reason.All(err)
	_, usage := errors.AsType[*reason.UsageError](err)
	switch {
	case len(all) > 0:
		return string(all[0].ID)
	case err == nil:
		return "ok"
	case usage:
		return misused
	}
	return "INTERNAL"
}

// recorded are the commands whose runs leave a folder: those that run steps. doctor does where its flags say so.
var recorded = []string{
	"up", "add-worker", "add-control-plane", "remove-worker", "remove-control-plane", "upgrade", "backup", "restore", "reset", "smoke", "dashboard", "certs renew",
	"user create", "user delete",
}

// recording is a report that is recorded, too.
type recording struct {
	report.Sink
	recorder *history.Recorder
}

// Emit shows e and records it.
func (r recording) Emit(e event.Event) {
	r.Sink.Emit(e)
	r.recorder.Emit(e)
}

// record lets what t tells from now on be recorded, if the command's runs are. The function that it returns ends that.
func record(c *cli.Context, inv *inventory.Inventory, id string, t *terminal) (ended func(error)) {
	if !slices.Contains(recorded, commandName(c)) && !c.Bool("fix") && !c.Bool("install-watch") {
		return func(error) {}
	}
	shown := t.Sink
	warn := func(err error) {
		shown.Emit(event.Event{Time: time.Now(), Run: id, Kind: event.Warning, Text: err.Error()})
	}
	recorder, err := records.Begin(inv, history.Result{Run: id, Command: commandLine(c), Version: c.App.Version}, warn)
	if err != nil {
		warn(err)
		return func(error) {}
	}
	t.Sink = recording{shown, recorder}
	return func(err error) {
		if outcome(err) == misused && !t.worked.Load() {
			recorder.Discard()
			return
		}
		recorder.End(outcome(err), exitStatus(err))
	}
}
