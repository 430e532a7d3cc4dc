package plan

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// Proves reports whether a run that does this proves the cards then: it did something for cards, or finds no notebook.
func Proves(g *graph.Graph) bool { return g.Has("gpu/ready") || g.Has(NotebookStep) }

// WithProof is the graph with the steps of the proof, for those who show it: they are planned when the cards can be had.
func WithProof(g *graph.Graph) *graph.Graph {
	i := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.ID == "gpu/ready" || s.ID == NotebookStep })
	if i < 0 {
		return g
	}
	out, found := *g, g.Steps[i].Ref
	proof := &graph.Step{Ref: graph.Ref{Host: found.Host, ID: "gpu/smoke"}, Reason: "when all cards can be had", Stage: graph.Proof}
	if found.ID == "gpu/ready" {
		proof.Needs = []graph.Ref{found}
	}
	proven := &graph.Step{Ref: graph.Ref{Host: found.Host, ID: "gpu/proven"}, Reason: "when they were", Needs: []graph.Ref{proof.Ref}, Stage: graph.Proof}
	Kinds.Complete(proof)
	Kinds.Complete(proven)
	out.Steps = append(slices.Clone(g.Steps), proof, proven)
	return &out
}

// OutputLogs is the output of the step of the proof.
const OutputLogs = "logs"

// Smoke plans the proof that the cards of the cluster can be used: the Jobs of a manifest.
func Smoke(inv *inventory.Inventory, seen map[string]*facts.Host, manifest, reason string) (*graph.Graph, error) {
	b, err := newIdentified(inv, seen)
	if err != nil {
		return nil, err
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "gpu/smoke"}, Reason: reason,
		Input: graph.Input{Values: map[string]string{"manifest": manifest, "resource": b.mechanism().Resource()}},
	})
	return &b.graph, b.graph.Validate()
}

// Sample is what the proof computes with on a host: what the driver that runs there can run.
func Sample(inv *inventory.Inventory, f *facts.Host) catalog.Sample {
	s := catalog.SampleOf(machine.BranchOf(f.NVIDIA.Loaded))
	s.Image = Image(inv, s.Image)
	return s
}

// Proven plans to remember, on the control plane, that the cards were proven.
func Proven(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "gpu/proven"}, Reason: "they were",
	})
	return &b.graph, b.graph.Validate()
}

// AllCards reports whether the hosts that were seen, control planes among them, have all cards of the inventory's nodes.
func AllCards(inv *inventory.Inventory, seen map[string]*facts.Host) bool {
	if len(seen) == len(inv.Hosts) {
		return true // what others the cluster has is nobody's here
	}
	c := machine.ClusterOf(inv, seen)
	known := map[string]bool{}
	for _, h := range inv.Hosts {
		if f := seen[h.ID()]; f != nil {
			known[machine.Machine{Host: h, Facts: f}.NodeName()] = true
		}
	}
	return c == nil || !slices.ContainsFunc(c.Nodes, func(n facts.Node) bool {
		_, cards := n.Labels[gpuLabel]
		return cards && !known[n.Name]
	})
}
