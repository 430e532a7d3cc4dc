package command

import (
	"os"
	"os/exec"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Kubectl is kgpu kubectl.
func Kubectl() *cli.Command {
	return &cli.Command{
		Name: "kubectl", Usage: "run kubectl on the cluster: this machine's, through SSH where needed, or the control plane's", ArgsUsage: "-- ARGUMENT…",
		Flags: slices.Concat(inventoryFlags, sshFlags, kubeconfigFlags), Action: kubectl,
	}
}

func kubectl(c *cli.Context) error {
	k := access.KubectlOptions{Args: c.Args().Slice(), Kubeconfig: c.String("kubeconfig"), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	k.Program, _ = exec.LookPath("kubectl") // where there is none, the control plane has one
	k.SSH, _ = exec.LookPath("ssh")
	return standardError(c, report.Normal, func(o session.Options) error {
		return access.Kubectl(c.Context, o, k)
	})
}
