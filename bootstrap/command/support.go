package command

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Support is kgpu support.
func Support() *cli.Command {
	return &cli.Command{
		Name: "support", Usage: "gather facts and logs in one file for somebody who helps", ArgsUsage: inventoryArgument,
		Flags: slices.Concat(inventoryFlags, sshFlags, bundleFlags), Action: support,
	}
}

func support(c *cli.Context) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	if c.String("file") == "-" {
		return usagef("a bundle is a file: name it with --file, and look through it before you pass it on")
	}
	events := report.New(report.Detect(os.Stdout), c.App.Writer, report.Normal)
	err = look.Support(c.Context, options(c, inv, events).Options, look.SupportOptions{
		File: c.String("file"), Version: c.App.Version, Now: time.Now(), Out: c.App.Writer,
	})
	return errors.Join(err, events.Close())
}
