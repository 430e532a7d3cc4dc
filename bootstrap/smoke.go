package bootstrap

import (
	"context"
	"fmt"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/smoke"
	"kgpu.dev/kgpu/inventory"
)

// Smoke proves that every card of the cluster's hosts can be used by exactly one pod.
func Smoke(ctx context.Context, o Options) error {
	s, err := open(ctx, o, o.Inventory.Hosts)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.attach(ctx); err != nil {
		return err
	}
	return s.prove(ctx)
}

// prove runs nvidia-smi in the cluster, once for each card that the hosts list.
func (s *session) prove(ctx context.Context) error {
	nodes, hosts := s.nodesWithCards()
	if len(nodes) == 0 {
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Kind: event.Warning, Text: "no host has a card that its driver sees: there is nothing to prove"})
		return nil
	}
	k := s.Inventory.Kubernetes
	minor, _ := catalog.Kubernetes(k.Version.Minor)
	manifest, err := smoke.Manifest(nodes, plan.Image(s.Inventory, catalog.SmokeImage), minor, k.FeatureGates)
	if err != nil {
		return err
	}
	cards := 0
	for _, n := range nodes {
		cards += len(n.Cards)
	}
	graph, err := plan.Smoke(s.Inventory, s.facts, manifest, fmt.Sprintf("%d cards on %d nodes", cards, len(nodes)))
	if err != nil {
		return err
	}
	done, err := s.engine().Execute(ctx, graph)
	if err != nil {
		return err
	}
	table, err := smoke.Judge(nodes, string(done.Outputs[graph.Steps[0].Ref][plan.OutputLogs]))
	for _, e := range reason.All(err) {
		e.Host = hosts[e.Host]
	}
	if err != nil {
		return err
	}
	for _, r := range table.Rows {
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Host: hosts[r.Node], Kind: event.Proof, Text: r.UUID + "  " + r.Card})
	}
	return nil
}

// nodesWithCards also returns the host of each node.
func (s *session) nodesWithCards() (nodes []smoke.Node, hosts map[string]string) {
	hosts = map[string]string{}
	for _, h := range s.Inventory.Hosts {
		f := s.facts[h.ID()]
		if f == nil || len(f.NVIDIA.Seen) == 0 {
			continue
		}
		n := smoke.Node{Name: plan.NodeName(h, f), Driver: plan.DriverMounts(f)}
		for _, g := range f.NVIDIA.Seen {
			n.Cards = append(n.Cards, smoke.Card{UUID: g.UUID, Name: g.Name})
		}
		nodes = append(nodes, n)
		hosts[n.Name] = h.ID()
	}
	return nodes, hosts
}

// proveNew is the last act of a run that did something for cards: the hosts with cards tell what their drivers see now.
func (s *session) proveNew(ctx context.Context, done *plan.Graph) error {
	if !done.Has("gpu/ready") {
		return nil
	}
	err := each(s.Inventory.Hosts, func(h inventory.Host) error {
		f := s.facts[h.ID()]
		if f == nil || !hasCards(f) && h.Role != inventory.ControlPlane {
			return nil
		}
		return s.look(ctx, h.ID())
	})
	if err != nil {
		return err
	}
	return s.prove(ctx)
}

func hasCards(f *facts.Host) bool { return len(plan.Cards(f)) > 0 }
