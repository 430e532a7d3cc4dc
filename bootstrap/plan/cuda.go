package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// toolkits plans CUDA on the hosts with cards. Nothing waits for it: it comes when the cards are proven.
func (b *builder) toolkits() {
	for _, h := range b.hosts {
		if h.cards == 0 {
			continue
		}
		first := len(b.graph.Steps)
		h.last = append(slices.Clone(h.gpuLast), graph.Ref{Host: b.admin.id, ID: "cluster/ready"}, graph.Ref{Host: b.admin.id, ID: "gpu/ready"})
		b.cuda(h)
		for _, s := range b.graph.Steps[first:] {
			s.Stage = graph.AfterProof
		}
	}
}

func (b *builder) cuda(h *host) {
	t, err := machine.ChooseCUDA(b.Inventory, h.Facts, h.choice)
	if err != nil { // preflight has refused it, and the user said to go on without
		b.warn("%s: no CUDA: %v", h.id, err)
		return
	}
	missing, download, disk := t.Missing(h.Facts)
	switch {
	case len(t.Packages) == 0:
		b.skip(h, "gpu/cuda", "no CUDA: "+t.Why)
		return
	case len(missing) == 0:
		b.skip(h, "gpu/cuda", "CUDA "+t.Version+" is installed: "+t.Why)
		return
	}
	if h.choice.Keep || h.choice.Source != catalog.FromCUDA { // otherwise the driver wants it before
		b.cudaRepository(h, h.choice)
	}
	b.add(h, graph.Step{
		Ref: graph.Ref{ID: "gpu/cuda"}, Title: "install CUDA " + t.Version,
		Reason:   fmt.Sprintf("%s: about %s to download, %s on disk; %s", strings.Join(missing, " and "), gigabytes(download), gigabytes(disk), t.Why),
		Download: download,
		Input:    graph.Input{Values: map[string]string{"packages": lines(missing...), "version": t.Version}},
	})
}

func gigabytes(mega int) string { return fmt.Sprintf("%.1f GB", float64(mega)/1000) }
