package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// Dashboard is kgpu dashboard.
func Dashboard() *cli.Command {
	return &cli.Command{
		Name: "dashboard", Usage: "deploy a web UI for the cluster, and lead there through SSH until Ctrl-C (with --output json, only deploy it); nothing is exposed",
		Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, []cli.Flag{
			&cli.BoolFlag{Name: "admin", Usage: "with all rights in the cluster, not only to look"},
			&cli.BoolFlag{Name: "remove", Usage: "delete it"}, portFlag,
		}), Action: dashboard,
	}
}

func dashboard(c *cli.Context) error {
	if c.Bool("remove") && (c.Bool("admin") || c.IsSet("port")) {
		return usagef("--remove goes neither with --admin nor with --port")
	}
	if c.Bool("remove") {
		return story(c, func(o bootstrap.Options, t *terminal) (err error) {
			t.ended, err = ended(access.RemoveDashboard(c.Context, o.Options))
			return err
		})
	}
	d := openOptions(c)
	d.Admin = c.Bool("admin")
	err := story(c, func(o bootstrap.Options, t *terminal) (err error) {
		t.ended, err = ended(access.Dashboard(c.Context, o.Options, d.Admin))
		return err
	})
	if err != nil || d.JSON { // the stream of events is over, and the token is not for programs
		return err
	}
	return standardError(c, report.Normal, func(o session.Options) error {
		return errors.Join(access.OpenDashboard(c.Context, o, d), sayItStays(c, o.Inventory))
	})
}

// sayItStays is said to who leaves the dashboard.
func sayItStays(c *cli.Context, inv *inventory.Inventory) error {
	_, err := fmt.Fprintln(report.On(c.App.Writer), "The dashboard stays in the cluster"+takesAway(c, inv))
	return err
}

// ended is how a story ended, if it ended well.
func ended(text string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return text, nil
}
