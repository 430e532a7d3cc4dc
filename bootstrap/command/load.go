package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/archive"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/inventory"
)

const (
	// usualInventory is the file that commands take when none is named.
	usualInventory = "inventory.yaml"
	// inventoryVariable names another one.
	inventoryVariable = "KGPU_INVENTORY"
	// inventoryArgument is the usage of commands whose only argument is the inventory.
	inventoryArgument = "[INVENTORY]"
)

// load reads the inventory: the argument, where the command's is one, --inventory, $KGPU_INVENTORY or ./inventory.yaml.
func load(c *cli.Context) (*inventory.Inventory, error) {
	path, err := inventoryPath(c, "inventory")
	if c.Command.ArgsUsage == inventoryArgument && c.Args().Present() {
		path, err = onlyInventory(c)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, usagef("%s is a folder: name the inventory itself, such as %s", path, filepath.Join(path, usualInventory))
	}
	inv, err := inventory.Load(path, inventory.Options{})
	if errors.Is(err, os.ErrNotExist) {
		return nil, noInventory(c, path)
	}
	return inv, err
}

// inventoryPath is the value of an option that names an inventory. An empty variable names none; an empty value is one that a
// script forgot.
func inventoryPath(c *cli.Context, option string) (string, error) {
	path := c.String(option)
	if path != "" {
		return path, nil
	}
	if variable, set := os.LookupEnv(inventoryVariable); set && variable == "" {
		return usualInventory, nil
	}
	return "", usagef("--%s has an empty value: it wants the name of a file", option)
}

// onlyInventory is the inventory that is the command's argument. Another one beside it may be of another cluster.
func onlyInventory(c *cli.Context) (string, error) {
	path, option := c.Args().First(), c.String("inventory")
	switch {
	case c.NArg() > 1:
		return "", usagef("one inventory at a time, not %d: %q", c.NArg(), c.Args().Slice())
	case path == "":
		return "", usagef("the inventory's name is empty: kgpu %s FILE", commandName(c))
	case c.IsSet("inventory") && option != os.Getenv(inventoryVariable) && option != path:
		return "", usagef("one inventory at a time, not %s and --inventory %s", path, option)
	}
	return path, nil
}

// noInventory says what to do without the file, or what was meant by its name.
func noInventory(c *cli.Context, path string) error {
	name := commandName(c)
	if path == "help" {
		return usagef("there is no inventory help: kgpu %s --help tells about the command", name)
	}
	if inv, err := inventory.Load(usualInventory, inventory.Options{}); err == nil &&
		slices.ContainsFunc(inv.Hosts, func(h inventory.Host) bool { return path == h.Name || path == h.Address }) {
		how := ""
		if slices.Contains(optionNames(c.Command.Flags), "--limit") {
			how = fmt.Sprintf(". kgpu %s --limit %s is for that host", name, path)
		}
		return usagef("%s is a host of %s; the argument of kgpu %s is an inventory%s", path, usualInventory, name, how)
	}
	if path == c.Args().First() && c.Command.ArgsUsage == inventoryArgument {
		if sub := nearest.Word(path, commandNames(c.Command.VisibleCommands())); sub != "" {
			return usagef("there is no inventory %s. Did you mean kgpu %s %s?", path, name, sub)
		}
		if slices.Contains([]string{".gz", ".tgz", ".age"}, filepath.Ext(path)) && slices.Contains(optionNames(c.Command.Flags), "--file") {
			return usagef("there is no inventory %s: kgpu %s --file %s writes to that file", path, name, writes(c, path))
		}
	}
	file, more := "FILE", ""
	switch info, err := os.Stat(c.Args().First()); {
	case name == "restore":
		file, more = "INVENTORY "+shellLine(c.Args().Slice()), inArchive(c.Args().First(), c.String("identity"))
	case err == nil && info.Mode().IsRegular():
		file = shellLine(c.Args().Slice()[:1]) // where arguments are hosts, it is taken for one
	}
	return usagef("there is no inventory %s: `kgpu init ADDRESS…` looks at your hosts and writes one, or name yours: kgpu %s -i %s%s", filepath.Clean(path), name, file, more)
}

// writes is the file that a command is to write, and what has it encrypted where its name says that it is.
func writes(c *cli.Context, file string) string {
	words := shellLine([]string{file})
	if filepath.Ext(file) == ".age" && !c.IsSet("recipient") {
		words += " --recipient age1…"
	}
	return words
}

// inArchive says how the inventory gets out of a backup, if that writes over none. One with an identity is encrypted.
func inArchive(file, identity string) string {
	if _, err := os.Stat(archive.Inventory); err == nil {
		return ""
	}
	get := shellLine([]string{"tar", "-xzf", file, archive.Inventory})
	if identity != "" || filepath.Ext(file) == ".age" {
		get = shellLine([]string{"age", "-d", "-i", cmp.Or(identity, "KEYFILE"), file}) + " | tar -xzf - " + archive.Inventory
	}
	return ". A backup that `kgpu backup` wrote has it, unlike those that control planes make by themselves: `" + get + "`"
}
