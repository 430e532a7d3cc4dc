package command

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// Init is kgpu init.
func Init() *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "look at hosts and write an inventory of what is found; changes nothing on them", ArgsUsage: "[USER@]ADDRESS[:PORT]…",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "write the inventory to `FILE`, or to standard output (-); a file that is there stays", Value: usualInventory, EnvVars: []string{inventoryVariable}, TakesFile: true},
			&cli.StringFlag{Name: "cluster", Usage: "the cluster's `NAME`", Value: "kgpu"},
			&cli.BoolFlag{Name: "modern", Usage: "choose flannel and containerd (default: weave and docker where every host can run them well)"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show every connection and what is run over it"},
		}, wayFlags, sshFlags),
		Action: initInventory,
	}
}

func initInventory(c *cli.Context) error {
	targets, err := targets(c)
	if err != nil {
		return err
	}
	file, err := inventoryPath(c, "file")
	if err != nil {
		return err
	}
	talk := c.App.Writer
	if file == "-" {
		talk = c.App.ErrWriter
	}
	now := time.Now()
	detail := report.Normal
	if c.Bool("verbose") {
		detail = report.Verbose
	}
	events := report.New(report.Plain, talk, detail)
	err = bootstrap.Init(c.Context, bootstrap.InitOptions{
		Options: session.Options{Run: session.NewRunID(now), Events: events, SSHConfig: c.String("ssh-config"), Trust: trust(c)},
		Targets: targets, File: file, Cluster: c.String("cluster"), Modern: c.Bool("modern"),
		Way: way(c), Follow: follow(c, file), Out: c.App.Writer, Talk: talk, Now: now,
	})
	return errors.Join(err, events.Close())
}

// way is how the command line says that new hosts are reached.
func way(c *cli.Context) inventory.Way {
	return inventory.Way{User: c.String("user"), Key: c.String("key"), SudoPassword: c.String("sudo-password"), AcceptNew: c.Bool("accept-new")}
}

// targets are the hosts of the command line and of --scan.
func targets(c *cli.Context) ([]inventory.Target, error) {
	var out []inventory.Target
	add := func(text, where string) error {
		list, err := inventory.ParseTargets(text)
		if err != nil {
			return usagef("%s%v", where, err)
		}
		out = append(out, list...)
		return nil
	}
	if err := noFiles(c); err != nil {
		return nil, err
	}
	for _, text := range c.Args().Slice() {
		if err := add(text, ""); err != nil {
			return nil, err
		}
	}
	if c.IsSet("scan") {
		if err := scan(c, add); err != nil {
			return nil, err
		}
	}
	switch {
	case len(out) > 0:
	case c.IsSet("scan"):
		return nil, usagef("--scan %s: no host is named there", c.String("scan"))
	default:
		return nil, usagef("which hosts? kgpu %s [USER@]ADDRESS[:PORT]…, such as: %s", c.Command.Name, examples["kgpu "+c.Command.Name][0])
	}
	out, err := inventory.DistinctTargets(out)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return out, nil
}

// scan adds the hosts of the file that --scan names.
func scan(c *cli.Context, add func(text, where string) error) error {
	name := c.String("scan")
	var from io.Reader = &answers{Reader: c.App.Reader, over: c.Context.Done()}
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return usagef("--scan: %v", err)
		}
		defer f.Close()
		from = f
	}
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := add(text, fmt.Sprintf("%s:%d: ", name, n)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return usagef("--scan %s: %v", name, err)
	}
	return nil
}

// follow is what names the inventory to the commands that come next.
func follow(c *cli.Context, file string) string {
	var words []string
	if c.IsSet("ssh-config") {
		words = append(words, "--ssh-config", c.String("ssh-config"))
	}
	switch file {
	case cmp.Or(os.Getenv(inventoryVariable), usualInventory): // is found
	case "-":
		words = append(words, "FILE")
	default:
		words = append(words, file)
	}
	if len(words) == 0 {
		return ""
	}
	return " " + shellLine(words)
}
