package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Kubeconfig is kgpu kubeconfig.
func Kubeconfig() *cli.Command {
	return &cli.Command{
		Name: "kubeconfig", Usage: "fetch the administrator's kubeconfig, or merge it into yours",
		Flags: slices.Concat(inventoryFlags, sshFlags, []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "write to `FILE`, - prints it (default: CLUSTER.kubeconfig beside the inventory)", TakesFile: true},
			&cli.BoolFlag{Name: "merge", Usage: "add the cluster to $KUBECONFIG or ~/.kube/config, with a context named after it; everything else there stays"},
			&cli.BoolFlag{Name: "use", Usage: "with --merge: make it the current context"},
			&cli.BoolFlag{Name: "tunnel", Usage: "lead to the API server through SSH until Ctrl-C; the kubeconfig for that, CLUSTER-tunnel.kubeconfig or --file, goes with it"},
			portFlag,
		}), Action: kubeconfig,
	}
}

func kubeconfig(c *cli.Context) error {
	switch {
	case c.Bool("merge") && (c.Bool("tunnel") || c.IsSet("file")):
		return usagef("--merge goes neither with --tunnel nor with --file")
	case c.Bool("use") && !c.Bool("merge"):
		return usagef("--use goes with --merge")
	case c.IsSet("port") && !c.Bool("tunnel"):
		return usagef("--port goes with --tunnel")
	}
	return standardError(c, report.Normal, func(o session.Options) error {
		return access.Kubeconfig(c.Context, o, access.KubeconfigOptions{
			File: c.String("file"), Merge: c.Bool("merge"), Use: c.Bool("use"), Tunnel: c.Bool("tunnel"), Port: c.Int("port"), Out: c.App.Writer,
		})
	})
}
