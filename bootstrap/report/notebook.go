package report

import (
	"fmt"
	"io"
)

// PrintNotebook writes what the notebook does on its card and where to open it. tunnel is the command that must run meanwhile, stop
// the one that gives the card back; port is one of every node that leads there, too; zero: none does.
func PrintNotebook(w io.Writer, does, url, tunnel, stop string, port uint16) error {
	p := On(w)
	_, err := fmt.Fprintf(p, "\nThe notebook %s\n%s\nwhile `%s` runs, which leads there through SSH; it has a card until `%s`\n", does, url, tunnel, stop)
	if err == nil && port != 0 {
		_, err = fmt.Fprintln(p, plainPort(port))
	}
	return err
}
