package command

import (
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Kubectl is kgpu kubectl.
func Kubectl() *cli.Command {
	return &cli.Command{
		Name: "kubectl", Usage: "run kubectl on the cluster: this machine's, through SSH where needed, or the control plane's", ArgsUsage: "-- ARGUMENT…",
		Flags: slices.Concat(inventoryFlags, sshFlags, kubeconfigFlags), Action: kubectl,
	}
}

func kubectl(c *cli.Context) error {
	program, err := exec.LookPath("kubectl")
	k := bootstrap.KubectlOptions{Program: program, Args: c.Args().Slice(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err != nil { // what comes is a host's
		k.Program, k.Stdout, k.Stderr = "", forTerminal(os.Stdout), forTerminal(os.Stderr)
	}
	return standardError(c, report.Normal, func(o bootstrap.Options) error {
		return bootstrap.Kubectl(c.Context, o, k)
	})
}

// forTerminal is f, without what a host could do to a terminal with it. A pipe gets what comes.
func forTerminal(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return printable.Writer(f)
	}
	return f
}
