// Command lab boots real hosts on one plain machine: see README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/scripts/lab/hosts"
	"kgpu.dev/kgpu/scripts/lab/internet"
	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/prepare"
	"kgpu.dev/kgpu/scripts/lab/process"
	"kgpu.dev/kgpu/scripts/lab/snapshot"
)

// A host's first process changes namespaces, which a thread has for itself:
// the whole program stays on the thread that it began on.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := app().RunContext(ctx, os.Args); err != nil {
		if status, ok := errors.AsType[hosts.Ended](err); ok {
			os.Exit(int(status))
		}
		fmt.Fprintln(os.Stderr, "lab:", err)
		if errors.Is(err, snapshot.ErrDifferent) {
			os.Exit(1)
		}
		os.Exit(2)
	}
}

func app() *cli.App {
	return &cli.App{
		Name:  "lab",
		Usage: "real hosts on one plain machine",
		Flags: []cli.Flag{&cli.StringFlag{Name: "name", Usage: "the lab, of several side by side", EnvVars: []string{"KGPU_LAB_NAME"}, Value: place.DefaultName}},
		Commands: []*cli.Command{
			{Name: "prepare", Usage: "build base systems, packages and images into the cache", ArgsUsage: "[" + strings.Join(prepare.Targets(), "|") + "|all]…", Action: doPrepare},
			{Name: "up", Usage: "make and start network, internet and hosts", Action: up, Flags: []cli.Flag{
				&cli.IntFlag{Name: "workers", Value: 2, Usage: "workers beside cp1"},
				&cli.StringSliceFlag{Name: "with", Usage: "further hosts: " + strings.Join(hosts.Extras(), ", ")},
				&cli.StringFlag{Name: "kind", Value: "trixie", Usage: "base system of new hosts"},
				&cli.StringSliceFlag{Name: "disks", Usage: "new `HOST` whose / and /var are file systems of their own; may be repeated"},
				&cli.GenericFlag{Name: "gpus", Value: &repeated{}, Usage: "NVIDIA cards of a new host: `HOST=COUNTxMODEL` of " + strings.Join(hosts.Models(), ", ") +
					", then words: ,nouveau ,nouveau-busy ,secureboot ,nvswitch ,nvlink5 ,oldkernel; may be repeated"},
			}},
			{Name: "status", Usage: "list the hosts", Action: lab((*hosts.Lab).Status)},
			{Name: "ssh", Usage: "log in to a host as ubuntu, or run a command so", ArgsUsage: "HOST [COMMAND…]", Action: command((*hosts.Lab).SSH), SkipFlagParsing: true},
			{Name: "exec", Usage: "run a command as root inside a host, without ssh", ArgsUsage: "HOST [COMMAND…]", Action: command((*hosts.Lab).Exec), SkipFlagParsing: true},
			{Name: "reboot", Usage: "reboot a host and wait for its sshd", ArgsUsage: "HOST", Action: hostContext((*hosts.Lab).Reboot)},
			{Name: "kill", Usage: "power cut: the host is off at once and stays so", ArgsUsage: "HOST", Action: host((*hosts.Lab).Kill)},
			{Name: "start", Usage: "start a host that is off", ArgsUsage: "HOST", Action: hostContext((*hosts.Lab).Start)},
			{Name: "cut", Usage: "drop all traffic of a host, silently", ArgsUsage: "HOST", Action: host((*hosts.Lab).Cut)},
			{Name: "heal", Usage: "undo cut", ArgsUsage: "HOST", Action: host((*hosts.Lab).Heal)},
			{Name: "delay", Usage: "add to each round trip to a host; 0 ends that", ArgsUsage: "HOST DURATION", Action: delay},
			faultCommand(),
			{Name: "snapshot", Usage: "record what a host is", ArgsUsage: "HOST", Action: takeSnapshot, Flags: []cli.Flag{
				&cli.StringFlag{Name: "o", Usage: "write to `FILE` instead of the lab's own collection"},
			}},
			{Name: "diff", Usage: "compare a host with its last snapshot, or with A, or A with B; exit 1 when they differ", ArgsUsage: "HOST [A [B]]", Action: diff},
			{Name: "down", Usage: "stop everything, keep the hosts' files", Action: down},
			{Name: "destroy", Usage: "cut the power of all hosts, and remove their files", Action: destroy},
			{Name: "env", Usage: "print what clients need, for eval", Action: lab((*hosts.Lab).Env)},
			{Name: "internet", Hidden: true, Action: serveInternet},
			{Name: "supervise", Hidden: true, Action: supervise},
			{Name: "boot", Hidden: true, Action: func(*cli.Context) error { return hosts.Boot() }},
		},
		// Errors reach main, which alone ends the program.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}

func open(c *cli.Context) (*hosts.Lab, error) {
	p, err := place.New(c.String("name"))
	if err != nil {
		return nil, err
	}
	return hosts.Open(p, c.App.Writer)
}

// The following make actions of a lab's methods.

func lab(f func(*hosts.Lab) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := noMore(c, 0); err != nil {
			return err
		}
		l, err := open(c)
		if err != nil {
			return err
		}
		return f(l)
	}
}

func host(f func(*hosts.Lab, string) error) cli.ActionFunc {
	return hostContext(func(l *hosts.Lab, _ context.Context, name string) error { return f(l, name) })
}

func hostContext(f func(*hosts.Lab, context.Context, string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := noMore(c, 1); err != nil {
			return err
		}
		l, err := open(c)
		if err != nil {
			return err
		}
		return f(l, c.Context, c.Args().First())
	}
}

func command(f func(*hosts.Lab, context.Context, string, []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if !c.Args().Present() {
			return usage(c)
		}
		l, err := open(c)
		if err != nil {
			return err
		}
		rest := c.Args().Tail()
		if len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
		return f(l, c.Context, c.Args().First(), rest)
	}
}

func noMore(c *cli.Context, n int) error {
	if c.NArg() != n {
		return usage(c)
	}
	return nil
}

func usage(c *cli.Context) error {
	return fmt.Errorf("usage: lab %s %s [LAB_USAGE]", c.Command.Name, c.Command.ArgsUsage)
}

func doPrepare(c *cli.Context) error {
	p, err := place.New(c.String("name"))
	if err != nil {
		return err
	}
	return prepare.Run(c.Context, prepare.Options{Place: p, What: c.Args().Slice(), Out: c.App.Writer})
}

func up(c *cli.Context) error {
	if err := noMore(c, 0); err != nil {
		return err
	}
	wanted, err := hosts.Wanted(c.Int("workers"), c.String("kind"), c.StringSlice("with"))
	if err == nil {
		err = errors.Join(hosts.Deal(wanted, *c.Generic("gpus").(*repeated)), hosts.GiveDisks(wanted, c.StringSlice("disks")))
	}
	if err != nil {
		return fmt.Errorf("%w [LAB_USAGE]", err)
	}
	p, err := place.New(c.String("name"))
	if err != nil {
		return err
	}
	l, err := hosts.Create(p, c.App.Writer)
	if err != nil {
		return err
	}
	return l.Up(c.Context, wanted)
}

// repeated are the values of a flag that may be repeated; those of the library's own kind end at commas.
type repeated []string

func (r *repeated) Set(value string) error {
	*r = append(*r, value)
	return nil
}

func (r *repeated) String() string { return strings.Join(*r, " ") }

func delay(c *cli.Context) error {
	if err := noMore(c, 2); err != nil {
		return err
	}
	d, err := time.ParseDuration(c.Args().Get(1))
	if err != nil || d < 0 {
		return fmt.Errorf("delay %q: want a duration such as 20ms, or 0 [LAB_USAGE]", c.Args().Get(1))
	}
	l, err := open(c)
	if err != nil {
		return err
	}
	return l.Delay(c.Args().First(), d)
}

func takeSnapshot(c *cli.Context) error {
	if err := noMore(c, 1); err != nil {
		return err
	}
	l, err := open(c)
	if err != nil {
		return err
	}
	return l.Snapshot(c.Context, c.Args().First(), c.String("o"))
}

func diff(c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 3 {
		return usage(c)
	}
	l, err := open(c)
	if err != nil {
		return err
	}
	return l.Diff(c.Context, c.Args().First(), c.Args().Tail())
}

// down and destroy have nothing to do for a lab that is not there.
func down(c *cli.Context) error    { return end(c, (*hosts.Lab).Down) }
func destroy(c *cli.Context) error { return end(c, (*hosts.Lab).Destroy) }

func end(c *cli.Context, f func(*hosts.Lab) error) error {
	err := lab(f)(c)
	if errors.Is(err, hosts.ErrNoLab) {
		_, err = fmt.Fprintf(c.App.Writer, "%s is not there\n", c.String("name"))
	}
	return err
}

func supervise(c *cli.Context) error {
	if err := process.AwaitRecord(); err != nil {
		return err
	}
	l, err := open(c)
	if err != nil {
		return err
	}
	return l.Supervise(c.Args().First())
}

func serveInternet(c *cli.Context) error {
	if err := process.AwaitRecord(); err != nil {
		return err
	}
	l, err := open(c)
	if err != nil {
		return err
	}
	return internet.Serve(c.Context, internet.Options{Place: l.Place, Listen: l.Listen(), Log: c.App.Writer})
}
