package report

import (
	"fmt"
	"io"
	"strings"

	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/inventory"
)

// mostNamed is how many hosts a line names before it only counts the others.
const mostNamed = 5

// PrintUses says what an inventory makes use of that was not used before; width is that of the terminal in columns, zero: none.
func PrintUses(w io.Writer, path string, uses []inventory.Use, width int) error {
	if len(uses) == 0 {
		return nil
	}
	out := &writer{w: printable.Writer(w)}
	fmt.Fprintln(out, Wrapped("No run with "+printable.Line(path)+" is recorded on this machine. Of what is yours, it makes use of:", width, "  "))
	for _, u := range uses {
		text := "  " + printable.Line(u.What) + ": " + u.How
		if whom := u.For; len(whom) > mostNamed {
			text += fmt.Sprintf(" %s and %d more", strings.Join(whom[:mostNamed], ", "), len(whom)-mostNamed)
		} else if len(whom) > 0 {
			text += " " + strings.Join(whom, ", ")
		}
		fmt.Fprintln(out, Wrapped(text, width, "      "))
	}
	return out.err
}
