package report

import (
	"fmt"
	"io"
	"strings"

	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// mostNamed is how many hosts a line names before it only counts the others.
const mostNamed = 5

// PrintUses says what an inventory makes use of that was not used before.
func PrintUses(w io.Writer, path string, uses []inventory.Use) error {
	if len(uses) == 0 {
		return nil
	}
	p := On(w)
	p.say(plain, "", "No run with "+printable.Line(path)+" is recorded on this machine. Of what is yours, it makes use of:")
	for _, u := range uses {
		text := "  " + printable.Line(u.What) + ": " + u.How
		if whom := u.For; len(whom) > mostNamed {
			text += fmt.Sprintf(" %s and %d more", strings.Join(whom[:mostNamed], ", "), len(whom)-mostNamed)
		} else if len(whom) > 0 {
			text += " " + strings.Join(whom, ", ")
		}
		p.say(plain, "", text)
	}
	return p.to.err
}
