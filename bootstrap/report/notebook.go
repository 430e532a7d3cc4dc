package report

import (
	"fmt"
	"io"
	"strings"

	"kgpu.dev/kgpu/bootstrap/printable"
)

// PrintNotebook writes the devices that the notebook lists and where to open it. tunnel is the command that must run meanwhile;
// port is one of every node that leads there, too; zero: none does.
func PrintNotebook(w io.Writer, devices []string, url, tunnel string, port uint16) error {
	p := printable.Writer(w)
	_, err := fmt.Fprintf(p, "\nThe notebook lists %s\n%s\nwhile `%s` runs, which leads there through SSH\n", strings.Join(devices, ", "), url, tunnel)
	if err == nil && port != 0 {
		_, err = fmt.Fprintln(p, plainPort(port))
	}
	return err
}
