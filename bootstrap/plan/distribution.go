package plan

import (
	"strings"

	"kgpu.dev/kgpu/bootstrap/machine"
)

// leftDistributions names what other kinds of Kubernetes left on hosts that are to become nodes.
func (b *builder) leftDistributions() {
	for _, h := range b.hosts {
		if h.Facts.Kubelet != nil {
			continue
		}
		for _, d := range machine.Distributions(h.Facts) {
			if !d.Installed {
				b.warn("%s: %s is not here any more and has left %s, which is not in the way: %s removes it",
					h.id, d.Name, strings.Join(d.Signs, ", "), d.RemovedBy)
			}
		}
	}
}
