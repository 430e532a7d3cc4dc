package report

import (
	"fmt"
	"io"
	"strings"

	"kgpu.dev/kgpu/bootstrap/printable"
)

// PrintNotebook writes the devices that the notebook lists and where to open it. tunnel is the command that must run
// meanwhile where its port cannot be reached from here; empty: it can.
func PrintNotebook(w io.Writer, devices []string, url, tunnel string) error {
	how := ""
	if tunnel != "" {
		how = "  (the port is not reachable from here: run `" + tunnel + "` first)"
	}
	_, err := fmt.Fprintf(printable.Writer(w), "\nThe notebook lists %s\n%s%s\n", strings.Join(devices, ", "), url, how)
	return err
}
