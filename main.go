// Command kgpu turns bare Ubuntu and Debian machines with NVIDIA cards into a Kubernetes cluster.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/inventory"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C leaves at once; work on hosts goes on in its units
	os.Exit(run(ctx, os.Args))
}

// run is kgpu with its exit status.
func run(ctx context.Context, args []string) int {
	app := newApp()
	err := app.RunContext(ctx, flagsFirst(app, args))
	var usage *bootstrap.UsageError
	var step *plan.UnknownStepError
	var invalid inventory.Errors
	switch {
	case err == nil:
		return reason.ExitOK
	case errors.Is(err, errPending):
		return reason.ExitPending
	case errors.As(err, &usage), errors.As(err, &step):
		fmt.Fprintf(printable.Writer(app.ErrWriter), "kgpu: %v\n", err)
		return reason.ExitUsage
	case errors.As(err, &invalid): // file:line:column first, as editors want it
		fmt.Fprintln(printable.Writer(app.ErrWriter), invalid)
		return reason.ExitStatus(err)
	}
	report.PrintError(app.ErrWriter, err)
	return reason.ExitStatus(err)
}

func newApp() *cli.App {
	app := &cli.App{
		Name: "kgpu", Version: version,
		Usage:                "a Kubernetes cluster that runs GPU work, out of bare machines",
		EnableBashCompletion: true,
		HideHelpCommand:      true,
		Suggest:              true,
		ErrWriter:            os.Stderr,
		ExitErrHandler:       func(*cli.Context, error) {}, // run prints errors and chooses the exit status
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("no command %q. %s (kgpu --help lists them)", c.Args().First(), cli.SuggestCommand(c.App.Commands, c.Args().First()))
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			{
				Name: "up", Usage: "make the cluster of the inventory, or carry on where a run stopped", ArgsUsage: "[INVENTORY]",
				Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags, kubeconfigFlags, yesFlags), Action: up,
			},
			{
				Name: "add-worker", Usage: "add hosts to the inventory and to the cluster", ArgsUsage: "ADDRESS…",
				Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: addWorker,
			},
			{
				Name: "reset", Usage: "take hosts, or the whole cluster, apart and undo what kgpu changed", ArgsUsage: "[HOST…]",
				Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: reset,
			},
			{
				Name: "smoke", Usage: "prove that every card can be used: nvidia-smi on each, and a notebook that lists one", ArgsUsage: "[INVENTORY]",
				Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags), Action: smoke,
			},
			{
				Name: "attach", Usage: "show the progress of the run that is at work on the cluster, whoever began it; changes nothing", ArgsUsage: "[INVENTORY]",
				Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags), Action: attach,
			},
			{
				Name: "plan", Usage: "say what up would do and why; exit status 2 when changes are pending", ArgsUsage: "[INVENTORY]",
				Flags: slices.Concat(inventoryFlags, connectionFlags, planFlags, outputFlags), Action: showPlan,
			},
			{
				Name: "validate", Usage: "check the inventory without touching any host", ArgsUsage: "[INVENTORY]",
				Flags: inventoryFlags, Action: validate,
			},
			{
				Name: "explain", Usage: "say what a reason, such as HOST_APT_LOCKED, or an exit status means, and what to do", ArgsUsage: "[REASON]",
				Flags: formatFlags, Action: explain,
			},
			{
				Name: "support", Usage: "gather logs, facts and versions in one file for somebody who helps, with secrets scrubbed", ArgsUsage: "[INVENTORY]",
				Flags: slices.Concat(inventoryFlags, sshFlags, bundleFlags), Action: support,
			},
			{
				Name: "schema", Usage: "print the JSON schema of the inventory, for editors",
				Action: func(c *cli.Context) error { _, err := c.App.Writer.Write(inventory.Schema()); return err },
			},
		},
	}
	for _, command := range app.Commands {
		command.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usagef("%v", err) }
	}
	app.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usagef("%v", err) }
	return app
}

var (
	inventoryFlags = []cli.Flag{
		&cli.StringFlag{Name: "inventory", Aliases: []string{"i"}, Usage: "the inventory `FILE`", EnvVars: []string{"KGPU_INVENTORY"}, Value: "inventory.yaml"},
	}
	sshFlags = []cli.Flag{
		&cli.StringFlag{Name: "ssh-config", Usage: "honour this ssh_config `FILE`, for example ~/.ssh/config", TakesFile: true},
	}
	connectionFlags = []cli.Flag{
		sshFlags[0],
		&cli.StringSliceFlag{Name: "ignore", Usage: "go on in spite of this preflight `REASON` (may be repeated)"},
	}
	planFlags = []cli.Flag{
		&cli.StringSliceFlag{Name: "only", Usage: "only steps with this `ID` or pattern, such as 'os/*' (may be repeated)"},
		&cli.StringSliceFlag{Name: "skip", Usage: "leave out steps with this `ID` or pattern (may be repeated)"},
		&cli.StringSliceFlag{Name: "limit", Usage: "only this `HOST` and the control plane (may be repeated)"},
		&cli.BoolFlag{Name: "adopt", Usage: "take over control planes and nodes that were made by hand with kubeadm, as they are, where they fit the inventory; remove what former pod networks left on fresh hosts"},
		&cli.IntFlag{Name: "max-unavailable", Usage: "drain and reboot at most `N` nodes at the same time", Value: 1},
	}
	formatFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: text or json", Value: "text"},
	}
	bundleFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` (default: kgpu-support-CLUSTER-TIME.tar.gz here); a file that is there stays", TakesFile: true},
	}
	outputFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: text, or json (one event a line)", Value: "text"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show the output of every step"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
	}
	kubeconfigFlags = []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "where the admin kubeconfig goes: `FILE` (default: CLUSTER.kubeconfig beside the inventory)", TakesFile: true},
	}
	yesFlags = []cli.Flag{
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
	}
)

// errPending is plan's answer that there is something to do.
var errPending = errors.New("changes are pending")

func up(c *cli.Context) error {
	return story(c, 1, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.Up(c.Context, o, t.showPlan)
	})
}

func addWorker(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("which host? kgpu add-worker ADDRESS…")
	}
	return story(c, 0, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.AddWorker(c.Context, o, c.Args().Slice(), t.showPlan)
	})
}

func reset(c *cli.Context) error {
	return story(c, 0, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.Reset(c.Context, o, c.Args().Slice(), func(g *plan.Graph) error {
			if err := t.showPlan(g); err != nil || g.Empty() || c.Bool("yes") {
				return err
			}
			return confirm(c, "This takes the cluster's hosts apart.", o.Inventory.Cluster)
		})
	})
}

func smoke(c *cli.Context) error {
	return story(c, 1, func(o bootstrap.Options, _ *terminal) error { return bootstrap.Smoke(c.Context, o) })
}

func attach(c *cli.Context) error {
	return story(c, 1, func(o bootstrap.Options, t *terminal) (err error) {
		t.ended, err = bootstrap.Attach(c.Context, o)
		return err
	})
}

func showPlan(c *cli.Context) error {
	return story(c, 1, func(o bootstrap.Options, t *terminal) error {
		if t.kind == report.JSON {
			o.Events = event.Discard // the answer is one object
		}
		g, err := bootstrap.Plan(c.Context, o)
		if err != nil {
			return err
		}
		if err := report.PrintPlan(c.App.Writer, g, report.PlanOptions{JSON: t.kind == report.JSON, Verbose: c.Bool("verbose")}); err != nil {
			return err
		}
		if !g.Empty() {
			return errPending
		}
		return nil
	})
}

func validate(c *cli.Context) error {
	inv, err := load(c, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%s is valid: cluster %s, Kubernetes %s, %d hosts\n", inv.Path, inv.Cluster, inv.Kubernetes.Version, len(inv.Hosts))
	return nil
}

func explain(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("one reason at a time, not %d: %q", c.NArg(), c.Args().Slice())
	}
	format := c.String("output")
	if format != "text" && format != "json" {
		return usagef("--output is text or json, not %q", format)
	}
	return bootstrap.Explain(c.App.Writer, c.Args().First(), format == "json")
}

func support(c *cli.Context) error {
	inv, err := load(c, 1)
	if err != nil {
		return err
	}
	now := time.Now()
	events := report.New(report.Detect(os.Stdout), c.App.Writer, report.Normal)
	err = bootstrap.Support(c.Context, bootstrap.Options{
		Inventory: inv, Run: bootstrap.NewRunID(now), Events: events, SSHConfig: c.String("ssh-config"),
	}, bootstrap.SupportOptions{File: c.String("output"), Version: version, Now: now, Out: c.App.Writer})
	return errors.Join(err, events.Close())
}

// terminal is where a story shows itself.
type terminal struct {
	report.Sink
	out      io.Writer
	kind     report.Kind
	detail   report.Detail
	notebook *bootstrap.Notebook // that was opened; nil: none
	ended    string              // how the story ended, where it says so itself
}

// showNotebook prints how to get into the notebook, with its token: never among events, which are kept.
func (t *terminal) showNotebook() error {
	if t.notebook == nil || t.kind == report.JSON {
		return nil
	}
	return report.PrintNotebook(t.out, t.notebook.Devices.Names, t.notebook.URL, t.notebook.Tunnel)
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
	t.Sink = report.New(t.kind, t.out, t.detail)
	id := bootstrap.NewRunID(time.Now())
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
	return errors.Join(err, t.showNotebook(), t.Close())
}

// commandLine is what others are told that this kgpu does: the command and its arguments, which hold no secrets.
func commandLine(c *cli.Context) string {
	return strings.Join(append([]string{c.Command.Name}, c.Args().Slice()...), " ")
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

// next is the last line of a run: what to do with the cluster, or again.
func next(c *cli.Context, inv *inventory.Inventory, err error) string {
	switch {
	case err != nil && slices.ContainsFunc(reason.All(err), func(e *reason.Error) bool { return e.Step != "" || e.ID == reason.SSHLost }):
		return "failed; this carries on: " + again(c, inv)
	case err != nil:
		return "failed"
	case c.Command.Name == "reset", c.Command.Name == "smoke":
		return "done"
	}
	path := c.String("kubeconfig")
	if path == "" {
		path = bootstrap.KubeconfigPath(inv)
	}
	return "done: kubectl --kubeconfig " + path + " get nodes"
}

// again is the command that carries on with the run that c began: the same, which may be repeated.
func again(c *cli.Context, inv *inventory.Inventory) string {
	words := []string{"kgpu", c.Command.Name, "--inventory", inv.Path}
	if c.Command.Name == "add-worker" || c.Command.Name == "reset" {
		words = append(words, c.Args().Slice()...) // hosts; of the others, the inventory
	}
	for _, flag := range []string{"only", "skip", "limit", "ignore"} {
		for _, value := range c.StringSlice(flag) {
			words = append(words, "--"+flag, value)
		}
	}
	for _, flag := range []string{"ssh-config", "kubeconfig", "max-unavailable"} {
		if c.IsSet(flag) {
			words = append(words, "--"+flag, fmt.Sprint(c.Value(flag)))
		}
	}
	for _, flag := range []string{"adopt", "yes"} {
		if c.Bool(flag) {
			words = append(words, "--"+flag)
		}
	}
	for i, word := range words {
		if !plainWord.MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plainWord is one that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

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
		return nil, usagef("no inventory %s: write one (README, examples/minimal.yaml), or name it: kgpu %s -i FILE", filepath.Clean(path), c.Command.Name)
	}
	return inv, err
}

// agree asks before pods that run are moved away from their nodes.
func (t *terminal) agree(c *cli.Context, nodes []bootstrap.Disturbance) error {
	if c.Bool("yes") {
		return nil
	}
	var what strings.Builder
	for _, d := range nodes {
		fmt.Fprintf(&what, "%s has to be drained: %s. Its pods move to other nodes, or wait: %s", d.Node, d.Reason, strings.Join(d.Pods, ", "))
		if len(d.WithCards) > 0 {
			fmt.Fprintf(&what, "; cards are held by %s", strings.Join(d.WithCards, ", "))
		}
		what.WriteString(".\n")
	}
	if t.kind == report.JSON {
		return usagef("%snot confirmed, nothing was changed (--yes agrees)", what.String())
	}
	return confirm(c, strings.TrimSuffix(what.String(), "\n"), "yes")
}

// confirm asks for a word, and changes nothing without it.
func confirm(c *cli.Context, what, word string) error {
	fmt.Fprintf(c.App.Writer, "%s\nType %s to go on: ", what, word)
	var answer string
	if _, err := fmt.Fscanln(c.App.Reader, &answer); err != nil || answer != word {
		return usagef("not confirmed, nothing was changed (kgpu %s --yes does not ask)", c.Command.Name)
	}
	return nil
}

func usagef(format string, args ...any) error {
	return &bootstrap.UsageError{Message: fmt.Sprintf(format, args...)}
}

// flagsFirst moves a command's flags before its arguments, so that `kgpu up inventory.yaml --output json` means what
// it says: the library stops at the first argument that is no flag.
func flagsFirst(app *cli.App, args []string) []string {
	at := slices.IndexFunc(args, func(a string) bool { return app.Command(a) != nil })
	if at < 0 {
		return args
	}
	takesValue := map[string]bool{}
	for _, f := range app.Command(args[at]).Flags {
		_, boolean := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !boolean
		}
	}
	var options, positional []string
	rest := args[at+1:]
	for i := 0; i < len(rest); i++ {
		switch a := rest[i]; {
		case a == "--":
			positional = append(positional, rest[i+1:]...)
			i = len(rest)
		case !strings.HasPrefix(a, "-") || a == "-":
			positional = append(positional, a)
		default:
			options = append(options, a)
			if takesValue[strings.TrimLeft(a, "-")] && i+1 < len(rest) {
				i++
				options = append(options, rest[i])
			}
		}
	}
	return slices.Concat(args[:at+1], options, []string{"--"}, positional)
}
