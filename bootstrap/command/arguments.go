package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// verbatim are the commands whose arguments are another program's: from the first that is no flag on they stay as they are.
var verbatim = map[string]bool{"kubectl": true, "ssh": true}

// flagsFirst moves a command's flags before its arguments, so that `kgpu up inventory.yaml --output json` means what
// it says: the library stops at the first argument that is no flag. Who asks for help gets that, whatever else is there.
func flagsFirst(app *cli.App, args []string) []string {
	at := slices.IndexFunc(args, func(a string) bool { return app.Command(a) != nil })
	if at < 0 {
		return args
	}
	asked := at == 2 && (args[1] == "help" || asksForHelp(args[1]))
	command := app.Command(args[at])
	if at+1 < len(args) {
		if sub := slices.IndexFunc(command.Subcommands, func(c *cli.Command) bool { return c.HasName(args[at+1]) }); sub >= 0 {
			command = command.Subcommands[sub]
			at++
		}
	}
	help := slices.Concat(args[:at+1], []string{"--help"})
	if asked {
		return slices.Delete(help, 1, 2)
	}
	takesValue := map[string]bool{}
	for _, f := range command.Flags {
		_, boolean := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !boolean
		}
	}
	var options, positional []string
	rest := args[at+1:]
	for i := 0; i < len(rest); i++ {
		switch a := rest[i]; {
		case a == "--":
			positional = append(positional, rest[i+1:]...)
			i = len(rest)
		case (!strings.HasPrefix(a, "-") || a == "-") && verbatim[command.Name]:
			positional = append(positional, rest[i:]...)
			i = len(rest)
		case !strings.HasPrefix(a, "-") || a == "-":
			positional = append(positional, a)
		case asksForHelp(a):
			return help
		default:
			options = append(options, a)
			if !takesValue[strings.TrimLeft(a, "-")] {
				continue
			}
			if i++; i == len(rest) { // the library says so; the mark below must not become the value
				return slices.Concat(args[:at+1], options)
			}
			options = append(options, rest[i])
		}
	}
	return slices.Concat(args[:at+1], options, []string{"--"}, positional)
}

func asksForHelp(word string) bool {
	return slices.Contains([]string{"-h", "--help", "-help", "--h"}, word)
}

// noFiles refuses files in the place of hosts, which an option takes: people forget it.
func noFiles(c *cli.Context) error {
	have := optionNames(c.Command.Flags)
	for _, a := range c.Args().Slice() {
		if info, err := os.Stat(a); err == nil && !info.IsDir() && slices.Contains([]string{".yaml", ".yml", ".txt"}, filepath.Ext(a)) {
			option := "-i"
			if slices.Contains(have, "--scan") && (filepath.Ext(a) == ".txt" || !slices.Contains(have, "--inventory")) {
				option = "--scan"
			}
			return usagef("%[1]s is a file, and no host: kgpu %[2]s %[3]s %[1]s", a, commandName(c), option)
		}
	}
	return nil
}

// noArguments refuses arguments where a command takes none.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("kgpu %s takes no arguments: %q", commandName(c), c.Args().Slice())
	}
	return nil
}
