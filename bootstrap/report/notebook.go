package report

import (
	"fmt"
	"io"
)

// PrintNotebook writes what the notebook does on its card and where to open it. tunnel is the command that must run meanwhile;
// port is one of every node that leads there, too; zero: none does.
func PrintNotebook(w io.Writer, does, url, tunnel string, port uint16) error {
	p := On(w)
	_, err := fmt.Fprintf(p, "\nThe notebook %s\n%s\nwhile `%s` runs, which leads there through SSH; it has a card until `kgpu notebook --stop`\n", does, url, tunnel)
	if err == nil && port != 0 {
		_, err = fmt.Fprintln(p, plainPort(port))
	}
	return err
}
