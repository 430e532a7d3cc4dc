package command

import (
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/report/schema"
	"kgpu.dev/kgpu/inventory"
)

// Schema is kgpu schema.
func Schema() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of the inventory, or of an output", ArgsUsage: "[SCHEMA]",
		Description: "SCHEMA is inventory, which it is without one, or " + strings.Join(schema.Names(), ", ") + ".",
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("one schema at a time, not %d: %q", c.NArg(), c.Args().Slice())
			}
			text, err := inventory.Schema(), error(nil)
			if name := c.Args().First(); name != "" && name != "inventory" {
				if text, err = schema.Named(name); err != nil {
					return usagef("no schema %q: there are inventory, %s", name, strings.Join(schema.Names(), ", "))
				}
			}
			_, err = c.App.Writer.Write(text)
			return err
		},
	}
}
