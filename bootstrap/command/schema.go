package command

import (
	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/inventory"
)

// Schema is kgpu schema.
func Schema() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of the inventory, for editors",
		Action: func(c *cli.Context) error { _, err := c.App.Writer.Write(inventory.Schema()); return err },
	}
}
