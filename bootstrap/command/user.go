package command

import (
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// User is kgpu user.
func User() *cli.Command {
	return &cli.Command{
		Name: "user", Usage: "let others work in the cluster who do not rule it",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("no command %q: kgpu user has create, list and delete", c.Args().First())
			}
			return cli.ShowSubcommandHelp(c)
		},
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make a kubeconfig for somebody, with rights in one namespace; again: renew it", ArgsUsage: "NAME",
				Flags: slices.Concat(inventoryFlags, connectionFlags, []cli.Flag{
					&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` to work in, made where it is missing (default: NAME)"},
					&cli.StringFlag{Name: "role", Usage: "`ROLE` in it: view, edit or admin", Value: "edit"},
					&cli.IntFlag{Name: "gpus", Usage: "pods in the namespace may have `N` cards at once, of each kind that nodes offer (default: no limit, or the one that there is)"},
					&cli.IntFlag{Name: "days", Usage: "the certificate is valid for `N` days, or as long as the cluster signs for", Value: 365},
					&cli.StringFlag{Name: "file", Usage: "write the kubeconfig to `FILE` (default: CLUSTER-NAME.kubeconfig beside the inventory)", TakesFile: true},
				}, outputFlags), Action: createUser,
			},
			{
				Name: "list", Usage: "list those who may work in the cluster", Flags: slices.Concat(inventoryFlags, sshFlags), Action: listUsers,
			},
			{
				Name: "delete", Usage: "take all rights from a user, and ask the API server what is left; what they made stays", ArgsUsage: "NAME",
				Flags: slices.Concat(inventoryFlags, connectionFlags, outputFlags), Action: deleteUser,
			},
		},
	}
}

func oneName(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("kgpu user %s takes the name of one user", c.Command.Name)
	}
	return c.Args().First(), nil
}

func createUser(c *cli.Context) error {
	name, err := oneName(c)
	if err != nil {
		return err
	}
	if c.String("file") == "-" {
		return usagef("a kubeconfig with a key in it is a file, for its owner only: name it with --file")
	}
	return story(c, func(o bootstrap.Options, t *terminal) (err error) {
		uo := access.UserOptions{Name: name, Namespace: c.String("namespace"), Role: c.String("role"), Days: c.Int("days"), File: c.String("file")}
		if c.IsSet("gpus") {
			uo.GPUs = new(c.Int("gpus"))
		}
		t.ended, err = ended(access.CreateUser(c.Context, o.Options, uo))
		return err
	})
}

func deleteUser(c *cli.Context) error {
	name, err := oneName(c)
	if err != nil {
		return err
	}
	return story(c, func(o bootstrap.Options, t *terminal) (err error) {
		t.ended, err = ended(access.DeleteUser(c.Context, o.Options, name))
		return err
	})
}

func listUsers(c *cli.Context) error {
	return standardError(c, report.Normal, func(o session.Options) error {
		users, err := access.Users(c.Context, o)
		if err != nil {
			return err
		}
		return report.PrintUsers(c.App.Writer, users, onward(c, o.Inventory, "user create", "NAME"))
	})
}
