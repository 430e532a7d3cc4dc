// Command kgpu turns bare Ubuntu and Debian machines with NVIDIA cards into a Kubernetes cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/command"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C leaves at once; work on hosts goes on in its units
	os.Exit(command.Run(ctx, newApp(), os.Args))
}

func newApp() *cli.App {
	return command.App(version,
		command.Group("Make a cluster", command.Validate(), command.Plan(), command.Up(), command.AddWorker()),
		command.Group("Use it", command.Smoke()),
		command.Group("When something goes wrong", command.Attach(), command.Explain(), command.Support()),
		command.Group("Take it apart", command.Reset()),
		command.Group("For your editor and shell", command.Schema(), command.Completion(), command.Man()),
	)
}
