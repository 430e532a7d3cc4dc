package session

import (
	"context"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/scripts"
)

// Disruption is a node whose pods a plan evicts, or ends if no other node can run them. A node without pods now may get
// some from nodes that are drained before it.
type Disruption struct {
	Node, Reason string
	Pods         []string // those that the drain concerns, as namespace/name
	WithCards    []string // those of Pods that hold GPUs
}

// Disruptions returns the nodes that the plan drains. Hosts are asked only if there are any.
func (s *Session) Disruptions(ctx context.Context, g *graph.Graph) ([]Disruption, error) {
	nodes, reasons := g.DrainedNodes()
	if len(nodes) == 0 {
		return nil, nil
	}
	cp := s.AdminPlane().ID()
	out, err := s.Ask(ctx, cp, Question{Name: "pods", Script: scripts.Pods(), Bounds: FactsBounds})
	if err != nil {
		return nil, FactsError(cp, err)
	}
	var found []Disruption
	for _, node := range nodes {
		d := Disruption{Node: node, Reason: reasons[node]}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(f) != 3 || f[0] != node {
				continue
			}
			d.Pods = append(d.Pods, f[1])
			if f[2] != "" {
				d.WithCards = append(d.WithCards, f[1])
			}
		}
		slices.Sort(d.Pods)
		slices.Sort(d.WithCards)
		found = append(found, d)
	}
	return found, nil
}

// Disrupting reports whether any of the nodes has pods.
func Disrupting(nodes []Disruption) bool {
	return slices.ContainsFunc(nodes, func(d Disruption) bool { return len(d.Pods) > 0 })
}
