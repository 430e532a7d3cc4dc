package session

import (
	"context"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/scripts"
)

// Disruption is a node whose pods a plan evicts, or ends if no other node can run them. A node without pods now may get
// some from nodes that are drained before it.
type Disruption struct {
	Node, Reason string
	Pods         []string // those that the drain concerns, as namespace/name
	WithCards    []string // those of Pods that hold GPUs
	Unknown      bool     // nobody tells what it has: the API server does not answer
}

// Disruptions returns the nodes that the plan drains. The cluster is asked only if there are any, and its API server answered last.
func (s *Session) Disruptions(ctx context.Context, g *graph.Graph) ([]Disruption, error) {
	nodes, reasons := g.DrainedNodes()
	if len(nodes) == 0 {
		return nil, nil
	}
	var out []pod
	answers := machine.SetOf(s.Inventory, s.Facts).APIAnswers()
	if answers {
		var err error
		if out, err = s.askPods(ctx); err != nil {
			return nil, err
		}
	}
	var found []Disruption
	for _, node := range nodes {
		d := Disruption{Node: node, Reason: reasons[node], Unknown: !answers}
		for _, p := range out {
			if p.node != node {
				continue
			}
			d.Pods = append(d.Pods, p.name)
			if p.cards {
				d.WithCards = append(d.WithCards, p.name)
			}
		}
		slices.Sort(d.Pods)
		slices.Sort(d.WithCards)
		found = append(found, d)
	}
	return found, nil
}

// Holders are the pods that hold GPUs, by node.
func (s *Session) Holders(ctx context.Context) (map[string][]string, error) {
	pods, err := s.askPods(ctx)
	holders := map[string][]string{}
	for _, p := range pods {
		if p.cards {
			holders[p.node] = append(holders[p.node], p.name)
		}
	}
	return holders, err
}

// pod is one that a drain concerns.
type pod struct {
	node, name string
	cards      bool
}

// askPods asks a control plane for them.
func (s *Session) askPods(ctx context.Context) (pods []pod, err error) {
	cp := s.AdminPlane().ID()
	out, err := s.Ask(ctx, cp, Question{Name: "pods", Script: scripts.Pods(), Bounds: FactsBounds})
	if err != nil {
		return nil, FactsError(cp, err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 3 {
			pods = append(pods, pod{f[0], f[1], f[2] != ""})
		}
	}
	return pods, nil
}

// Disrupting reports whether any of the nodes has pods, or may have some.
func Disrupting(nodes []Disruption) bool {
	return slices.ContainsFunc(nodes, func(d Disruption) bool { return len(d.Pods) > 0 || d.Unknown })
}
