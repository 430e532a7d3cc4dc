package bootstrap

import (
	"context"
	"errors"

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
	return o.adviseLimit(hosts, converge(ctx, o, hosts, show))
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
	if err := s.agreed(ctx, graph); err != nil {
		return err
	}
	rest, failed := s.carryOut(ctx, graph)
	if rest == nil {
		return failed
	}
	return errors.Join(failed, s.finish(ctx, rest))
}

// finish is what comes when all that has to be done now is done: by graph, the last one.
func (s *session) finish(ctx context.Context, graph *plan.Graph) error {
	now, later := graph.Split()
	if err := s.kubeconfig(ctx, !now.Empty()); err != nil {
		return err
	}
	if err := s.proveNew(ctx, now); err != nil {
		return err
	}
	_, err := s.engine().Execute(ctx, later)
	return err
}

func (s *session) plan() (*plan.Graph, error) {
	graph, err := plan.Up(s.Inventory, s.facts)
	if err != nil {
		return nil, err
	}
	graph.Pace(max(s.MaxUnavailable, 1))
	return graph.Select(s.Only, s.Skip)
}
