package command

import (
	"time"

	"github.com/urfave/cli/v2"
)

var (
	inventoryFlags = []cli.Flag{
		&cli.StringFlag{Name: "inventory", Aliases: []string{"i"}, Usage: "the inventory `FILE`", EnvVars: []string{inventoryVariable}, Value: usualInventory},
	}
	sshFlags = []cli.Flag{
		&cli.StringFlag{Name: "ssh-config", Usage: "honour this ssh_config `FILE`, for example ~/.ssh/config", TakesFile: true},
	}
	// wayFlags name new hosts, and say how they are reached.
	wayFlags = []cli.Flag{
		&cli.StringFlag{Name: "scan", Usage: "take hosts from `FILE`, or from standard input (-): one a line, # begins a comment", TakesFile: true},
		&cli.StringFlag{Name: "user", Usage: "log in as `USER` (default: what the inventory or --ssh-config says, else root)"},
		&cli.StringFlag{Name: "key", Usage: "log in with this private key `FILE` (default: the agent's keys, then the usual ones in ~/.ssh)", TakesFile: true},
		&cli.StringFlag{Name: "sudo-password", Usage: "where sudo's password is: `REFERENCE` ${NAME} (an environment variable) or file:PATH"},
		&cli.BoolFlag{Name: "accept-new", Usage: "trust hosts that are not in known_hosts, as they show themselves now, and pin their keys in the inventory"},
	}
	connectionFlags = []cli.Flag{
		sshFlags[0],
		&cli.StringSliceFlag{Name: "ignore", Usage: "go on in spite of this preflight `REASON` (may be repeated)"},
	}
	planFlags = []cli.Flag{
		&cli.StringSliceFlag{Name: "only", Usage: "only steps with this `ID` or pattern, such as 'os/*' (may be repeated)"},
		&cli.StringSliceFlag{Name: "skip", Usage: "leave out steps with this `ID` or pattern (may be repeated)"},
		&cli.StringSliceFlag{Name: "limit", Usage: "only this `HOST` and the control planes (may be repeated)"},
		&cli.BoolFlag{Name: "adopt", Usage: "take over control planes and nodes that were made by hand with kubeadm, as they are, where they fit the inventory; remove what former pod networks left on fresh hosts"},
		unavailableFlag,
		&cli.DurationFlag{
			Name: "drain-timeout", Usage: "give pods so much `TIME` to leave a node, such as 10m (default: half an hour)",
			Action: func(_ *cli.Context, limit time.Duration) error {
				if limit < time.Second {
					return usagef("--drain-timeout is at least 1s, not %s", limit)
				}
				return nil
			},
		},
		&cli.BoolFlag{Name: "skip-busy", Usage: "leave nodes whose pods hold cards as they are: no upgrade, no other driver; a later run takes them"},
	}
	unavailableFlag = &cli.IntFlag{
		Name: "max-unavailable", Usage: "drain and reboot at most `N` nodes at the same time", Value: 1,
		Action: func(_ *cli.Context, n int) error {
			if n < 1 {
				return usagef("--max-unavailable is at least 1, not %d", n)
			}
			return nil
		},
	}
	portFlag = &cli.IntFlag{
		Name: "port", Usage: "`PORT` of this machine that leads there (default: a free one)",
		Action: func(_ *cli.Context, port int) error {
			if port < 0 || port > 65535 {
				return usagef("--port is 1 to 65535, not %d", port)
			}
			return nil
		},
	}
	formatFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: text or json", Value: "text", Action: textOrJSON},
	}
	bundleFlags = []cli.Flag{
		&cli.StringFlag{Name: "file", Usage: "write to `FILE` (default: kgpu-support-CLUSTER-TIME.tar.gz here); a file that is there stays", TakesFile: true},
	}
	outputFlags = []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: text, or json (one event a line)", Value: "text", Action: textOrJSON},
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

func textOrJSON(_ *cli.Context, format string) error {
	if format != "text" && format != "json" {
		return usagef("--output is text or json, not %q", format)
	}
	return nil
}

// inJSON reports whether --output says json.
func inJSON(c *cli.Context) bool { return c.String("output") == "json" }
