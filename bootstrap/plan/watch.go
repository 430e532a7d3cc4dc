package plan

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// Files of the check of cards that runs on nodes.
const (
	watchProgram = "/usr/local/sbin/kgpu-gpu-watch"
	watchService = "/etc/systemd/system/kgpu-gpu-watch.service"
	watchTimer   = "/etc/systemd/system/kgpu-gpu-watch.timer"
)

// watchServiceFile checks the cards of a node once, without those at the addresses that are left out. Neither its name nor an
// address is anything that systemd or a shell would read as more than that.
func watchServiceFile(node string, leftOut []string) graph.File {
	return text("# Tells the cluster whether the node's cards answer, written by kgpu.\n[Unit]\nDescription=Check of this node's cards\n\n" +
		"[Service]\nType=oneshot\nExecStart=" + strings.Join(append([]string{watchProgram, node}, leftOut...), " ") + "\nTimeoutStartSec=120\nTimeoutStopSec=10\n")
}

var watchTimerFile = text("# Written by kgpu.\n[Unit]\nDescription=Check of this node's cards, every minute\n\n" +
	"[Timer]\nOnActiveSec=5\nOnBootSec=60\nOnUnitInactiveSec=60\nAccuracySec=5\n\n[Install]\nWantedBy=timers.target\n")

// Watch plans the check of cards on the nodes with cards, of those with these IDs (none: all). program is the check.
func Watch(inv *inventory.Inventory, seen map[string]*facts.Host, only []string, program []byte) (*graph.Graph, error) {
	b, err := newIdentified(inv, seen)
	if err != nil {
		return nil, err
	}
	for _, h := range b.hosts {
		if len(only) > 0 && !slices.Contains(only, h.id) {
			continue
		}
		if len(machine.Cards(b.Inventory, h.Facts)) == 0 || h.Facts.Kubelet == nil {
			b.skip(h, "doctor/watch", "it is no node with cards")
			continue
		}
		files := map[string]graph.File{
			watchProgram: {Mode: 0o755, Content: program},
			watchService: watchServiceFile(h.node, b.leftOut(h.Facts)),
			watchTimer:   watchTimerFile,
		}
		b.unless(h, changed(h.Facts, files), "its cards are checked every minute", graph.Step{
			Ref:   graph.Ref{ID: "doctor/watch"},
			Input: graph.Input{Files: files},
		})
	}
	return &b.graph, b.graph.Validate()
}
