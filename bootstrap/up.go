package bootstrap

import (
	"context"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

// Up makes the cluster of the inventory, or carries on where a former run stopped. show is called with the plan before
// anything is touched.
func Up(ctx context.Context, o Options, show func(*plan.Graph) error) error {
	hosts, err := o.selected()
	if err != nil {
		return err
	}
	return converge(ctx, o, hosts, show)
}

// Plan says what Up would do. It changes nothing.
func Plan(ctx context.Context, o Options) (*plan.Graph, error) {
	hosts, err := o.selected()
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, o, hosts)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.preflight(ctx); err != nil {
		return nil, err
	}
	return s.plan()
}

// converge is the story of up and add-worker: look, judge, plan, run, hand over the kubeconfig, prove the cards, and do
// what the cluster serves without.
func converge(ctx context.Context, o Options, hosts []inventory.Host, show func(*plan.Graph) error) error {
	s, err := open(ctx, o, hosts)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.attach(ctx); err != nil {
		return err
	}
	if err := s.preflight(ctx); err != nil {
		return err
	}
	graph, err := s.plan()
	if err != nil {
		return err
	}
	s.skips(graph)
	if err := show(graph); err != nil {
		return err
	}
	now, later := graph.Split()
	// The notebook takes a card: the proof deploys it when the Jobs, which want all of them, are done.
	if err := s.execute(ctx, now.Without(plan.NotebookStep)); err != nil {
		return err
	}
	if err := s.kubeconfig(ctx, !now.Empty()); err != nil {
		return err
	}
	if err := s.proveNew(ctx, now); err != nil {
		return err
	}
	return s.execute(ctx, later)
}

func (s *session) execute(ctx context.Context, graph *plan.Graph) error {
	if graph.Empty() {
		return nil
	}
	_, err := s.engine().Execute(ctx, graph)
	return err
}

func (s *session) plan() (*plan.Graph, error) {
	up := plan.Up
	if s.Adopt {
		up = plan.UpAdopting
	}
	graph, err := up(s.Inventory, s.facts)
	if err != nil {
		return nil, err
	}
	graph.Pace(max(s.MaxUnavailable, 1))
	return graph.Select(s.Only, s.Skip)
}
