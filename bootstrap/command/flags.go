package command

import (
	"github.com/urfave/cli/v2"
)

var (
	inventoryFlags = []cli.Flag{
		&cli.StringFlag{Name: "inventory", Aliases: []string{"i"}, Usage: "the inventory `FILE`", EnvVars: []string{inventoryVariable}, Value: usualInventory},
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
