package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// verbatim are the commands whose arguments are another program's: from the first that is no flag on they stay as they are.
var verbatim = map[string]bool{"kubectl": true, "ssh": true}

// flagsFirst moves a command's flags before its arguments, so that `kgpu up inventory.yaml --output json` means what
// it says: the library stops at the first argument that is no flag.
func flagsFirst(app *cli.App, args []string) []string {
	at := slices.IndexFunc(args, func(a string) bool { return app.Command(a) != nil })
	if at < 0 {
		return args
	}
	command := app.Command(args[at])
	if at+1 < len(args) {
		if sub := slices.IndexFunc(command.Subcommands, func(c *cli.Command) bool { return c.HasName(args[at+1]) }); sub >= 0 {
			command = command.Subcommands[sub]
			at++
		}
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
