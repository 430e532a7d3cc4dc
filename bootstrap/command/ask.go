package command

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/report"
)

// agree asks before pods that run are moved away from their nodes.
func (t *terminal) agree(c *cli.Context, nodes []bootstrap.Disturbance) error {
	if c.Bool("yes") {
		return nil
	}
	var what strings.Builder
	for _, d := range nodes {
		fmt.Fprintf(&what, "%s has to be drained: %s. Its pods move to other nodes, or wait: %s", d.Node, d.Reason, strings.Join(d.Pods, ", "))
		if len(d.WithCards) > 0 {
			fmt.Fprintf(&what, "; cards are held by %s", strings.Join(d.WithCards, ", "))
		}
		what.WriteString(".\n")
	}
	if t.kind == report.JSON {
		return usagef("%snot confirmed, nothing was changed (--yes agrees)", what.String())
	}
	return confirm(c, strings.TrimSuffix(what.String(), "\n"), "yes")
}

// confirm asks for a word, and changes nothing without it.
func confirm(c *cli.Context, what, word string) error {
	fmt.Fprintf(printable.Writer(c.App.Writer), "%s\nType %s to go on: ", what, word)
	var answer string
	if _, err := fmt.Fscanln(c.App.Reader, &answer); err != nil || answer != word {
		return usagef("not confirmed, nothing was changed (kgpu %s --yes does not ask)", c.Command.Name)
	}
	return nil
}
