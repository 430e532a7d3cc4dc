package report

import (
	"fmt"
	"io"
)

// PrintBundle writes what is in the bundle of kgpu support, and what to do with it.
func PrintBundle(w io.Writer, file string, size int64, told, hosts int) error {
	_, err := fmt.Fprintf(On(w), `%s: %s, from %d of %d hosts
It has the inventory, what the last runs told here, and of each host: facts, the list of kgpu's changes, events of the last runs, logs of the kubelet, the runtime, kgpu and the kernel, disks, network, cards, settings; from the control plane: nodes, pods, events.
Secrets that kgpu knows or recognises were scrubbed. Names and addresses are in it: look through it before you pass it on.
`, file, megabytes(size), told, hosts)
	return err
}

func megabytes(size int64) string {
	if size < 100_000 {
		return fmt.Sprintf("%d kB", (size+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(size)/1e6)
}
