package command

import (
	"regexp"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/nearest"
)

// notDefined is what the library says of an option that a command does not have.
var notDefined = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)

// usageError says what is wrong with the options of a command, and which one was meant. The flags are read when it is needed:
// the library adds its own.
func usageError(command string, flags *[]cli.Flag) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		unknown := notDefined.FindStringSubmatch(err.Error())
		if unknown == nil {
			return usagef("%s: %v", command, err)
		}
		return usagef("%s has no option %q.%s (%s --help lists them)", command, dashes(unknown[1]), nearest.Hint(dashes(unknown[1]), optionNames(*flags)), command)
	}
}

// optionNames are the options as they are typed, the long ones.
func optionNames(flags []cli.Flag) (names []string) {
	for _, flag := range flags {
		for _, name := range flag.Names() {
			if len(name) > 1 {
				names = append(names, dashes(name))
			}
		}
	}
	return names
}

// dashes puts as many dashes before an option's name as people type.
func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
