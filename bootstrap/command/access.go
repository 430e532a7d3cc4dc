package command

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

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

var portFlag = &cli.IntFlag{Name: "port", Usage: "`PORT` of this machine that leads there (default: a free one)"}

func checkPort(c *cli.Context) error {
	if p := c.Int("port"); p < 0 || p > 65535 {
		return usagef("--port is 1 to 65535, not %d", p)
	}
	return nil
}

func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("kgpu %s takes no arguments: %q", commandName(c), c.Args().Slice())
	}
	return nil
}
