package plan

import (
	"strings"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// clean plans the removal of what former pod networks left.
func (b *builder) clean(h *host) {
	if l := machine.StaleCNIOf(b.Inventory.Network, h.Facts); b.Adopt && len(l.Known) > 0 {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "host/leftovers"}, Reason: "found " + strings.Join(l.Known, ", "),
		})
	}
}
