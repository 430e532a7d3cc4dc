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

// SSH is kgpu ssh.
func SSH() *cli.Command {
	return &cli.Command{
		Name: "ssh", Usage: "log in to a host, or run a command there, the way that the inventory says", ArgsUsage: "[HOST [-- COMMAND…]]",
		Flags: slices.Concat(inventoryFlags, sshFlags), Action: ssh,
	}
}

func ssh(c *cli.Context) error {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return usagef("there is no ssh on this machine: install the OpenSSH client")
	}
	so := access.SSHOptions{Program: program, Host: c.Args().First(), Command: c.Args().Tail(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if len(so.Command) > 0 && so.Command[0] == "--" {
		so.Command = so.Command[1:]
	}
	return standardError(c, report.Quiet, func(o session.Options) error {
		return access.SSH(c.Context, o, so)
	})
}
