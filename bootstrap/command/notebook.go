package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Notebook is kgpu notebook.
func Notebook() *cli.Command {
	return &cli.Command{
		Name: "notebook", Usage: "say how the Jupyter notebook is opened, and lead there through SSH where needed",
		Flags: slices.Concat(inventoryFlags, sshFlags, formatFlags, []cli.Flag{
			&cli.BoolFlag{Name: "open", Usage: "open it in a browser"}, portFlag,
			&cli.BoolFlag{Name: "stop", Usage: "give its GPU back: its kernels end, and without `notebook: {storage: …}` what was written in it is gone"},
		}), Action: notebook,
	}
}

func notebook(c *cli.Context) error {
	d := openOptions(c)
	do := access.OpenNotebook
	if c.Bool("stop") {
		if c.Bool("open") || c.IsSet("port") {
			return usagef("--stop opens nothing: leave --open and --port out")
		}
		do = access.StopNotebook
	}
	if c.Bool("open") {
		d.Open = access.Browse
	}
	return standardError(c, report.Normal, func(o session.Options) error {
		d.Start = onward(c, o.Inventory, "notebook")
		return do(c.Context, o, d)
	})
}

func openOptions(c *cli.Context) access.OpenOptions {
	return access.OpenOptions{Port: c.Int("port"), Out: c.App.Writer, JSON: inJSON(c)}
}
