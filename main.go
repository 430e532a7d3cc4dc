// Command kgpu turns bare Ubuntu and Debian machines with NVIDIA cards into a Kubernetes cluster.
package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/command"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "development"

func main() {
	os.Exit(command.Run(command.Interruptible(), newApp(), os.Args))
}

func newApp() *cli.App {
	return command.App(version,
		command.Group("Make a cluster",
			command.Init(), command.Validate(), command.Plan(), command.Up(), command.AddWorker(), command.AddControlPlane(), command.RemoveWorker(), command.RemoveControlPlane(),
			command.Upgrade(), command.Render()),
		command.Group("Use it",
			command.Status(), command.Kubeconfig(), command.Kubectl(), command.Notebook(), command.Dashboard(), command.User(), command.SSH(), command.Smoke()),
		command.Group("Keep it", command.Backup(), command.Restore()),
		command.Group("When something goes wrong",
			command.Doctor(), command.Certs(), command.Attach(), command.Runs(), command.Explain(), command.Support()),
		command.Group("Take it apart", command.Reset()),
		command.Group("For your editor and shell", command.Schema(), command.Completion(), command.Man()),
		command.FormerNames(),
	)
}
