package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Certs is kgpu certs.
func Certs() *cli.Command {
	return &cli.Command{
		Name: "certs", Usage: "list the certificates of Kubernetes on all hosts, when they end and who renews them", ArgsUsage: inventoryArgument,
		Description: "Looks at all hosts, and changes nothing. The exit status is 0 when nobody has to see to anything, and 2 when a certificate\n" +
			"ends in less than 60 days, or has ended, or a host cannot be reached. What its kubelet renews in time is well.\n" +
			"The fields of --output json are described by `kgpu schema certs`.",
		Flags: slices.Concat(inventoryFlags, sshFlags, formatFlags), Action: listCertificates,
		Subcommands: []*cli.Command{{
			Name: "renew", Usage: "renew the certificates of the control plane now",
			Description: "Shows the plan and asks. kubeadm renews all certificates that it made, on one control plane after the other, and the static\n" +
				"pods there start anew; the API server of each is away for a quarter of a minute. Certificate authorities and keys for Secrets stay.\n" +
				"The administrator's kubeconfig beside the inventory, and the context that kgpu merged into your own, are brought up to date.\n" +
				"Killed anywhere, the same command or `kgpu up` goes on.",
			Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags, kubeconfigFlags, yesFlags), Action: renewCertificates,
		}},
	}
}

func listCertificates(c *cli.Context) error {
	inv, err := load(c)
	if err != nil {
		return err
	}
	found, err := look.Certificates(c.Context, options(c, inv, event.Discard).Options)
	if err != nil {
		return err
	}
	if inJSON(c) {
		err = report.CertificatesJSON(c.App.Writer, found)
	} else {
		err = report.PrintCertificates(c.App.Writer, found, onward(c, inv, "certs renew"), onward(c, inv, "up"))
	}
	if err == nil && !found.Well() {
		err = errNotWell
	}
	return err
}

func renewCertificates(c *cli.Context) error {
	if err := noFiles(c); err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) error {
		return bootstrap.RenewCertificates(c.Context, o, func(g *graph.Graph) error {
			if err := t.showPlan(g); err != nil {
				return err
			}
			return t.confirm(c, "This renews the certificates of the cluster "+o.Inventory.Cluster+", and restarts its control plane: the API server is away for a quarter of a minute.", "yes")
		})
	})
}
