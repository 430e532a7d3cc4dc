package bootstrap

import (
	"context"
	"errors"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Up makes the cluster of the inventory, or carries on where a former run stopped. show is called with the plan before
// anything is touched.
func Up(ctx context.Context, o Options, show func(*graph.Graph) error) error {
	hosts, err := o.selected()
	if err != nil {
		return err
	}
	return o.adviseLimit(hosts, converge(ctx, o, hosts, show, func(map[string]*facts.Host) error { return nil }))
}

// Plan says what Up would do. It changes nothing.
func Plan(ctx context.Context, o Options) (*graph.Graph, error) {
	graph, _, err := o.planned(ctx)
	return graph, err
}

// planned is Plan, and the inventory with the version of Kubernetes that it plans for.
func (o Options) planned(ctx context.Context) (*graph.Graph, *inventory.Inventory, error) {
	hosts, err := o.selected()
	if err != nil {
		return nil, nil, err
	}
	s, err := open(ctx, o, hosts)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	other := s.other()
	found := s.preflight(ctx)
	if found != nil && (other == "" || ctx.Err() != nil) {
		return nil, nil, found
	}
	graph, err := s.plan()
	if err != nil {
		return nil, nil, err
	}
	if other != "" {
		graph.Warnings = append(graph.Warnings, atWork+other+"; `kgpu attach` shows the progress")
		for _, e := range reason.All(found) { // half of it may be the other's work, and gone in a moment
			graph.Warnings = append(graph.Warnings, e.Error())
		}
	}
	return graph, s.settled(), nil
}

// converge is the story of up and add-worker: look, judge, plan, run, hand over the kubeconfig, prove the cards, and do
// what the cluster serves without. begin is called when the plan was shown, before anything on the hosts changes, with
// what was seen on them, by their IDs. Workers that are lost on the way are left out; what they failed with is in the error.
func converge(ctx context.Context, o Options, hosts []inventory.Host, show func(*graph.Graph) error, begin func(map[string]*facts.Host) error) error {
	s, err := openAlone(ctx, o, hosts)
	if err != nil {
		return err
	}
	defer s.close()
	s.goesOn = true
	err = s.converge(ctx, show, begin)
	if s.left != nil {
		err = errors.Join(s.left, err)
	}
	return err
}

func (s *session) converge(ctx context.Context, show func(*graph.Graph) error, begin func(map[string]*facts.Host) error) error {
	if err := s.awaiting(ctx, s.attach); err != nil {
		return err
	}
	if err := s.preflight(ctx); err != nil {
		return err
	}
	g, err := s.plan()
	if err != nil {
		return err
	}
	s.skips(g)
	ask := func(g *graph.Graph) error {
		if err := s.checkKubeconfig(g); err != nil {
			return err
		}
		if err := show(g); err != nil {
			return err
		}
		return s.agreed(ctx, g)
	}
	if err := ask(g); err != nil {
		return err
	}
	design := func(ctx context.Context) (*graph.Graph, error) {
		if err := s.attach(ctx); err != nil {
			return nil, err
		}
		return s.plan()
	}
	return s.changing(ctx, g, design, ask, func(ctx context.Context, g *graph.Graph) error {
		if err := begin(s.facts); err != nil {
			return err
		}
		rest, err := s.carryOut(ctx, g)
		if err != nil {
			return err
		}
		return s.finish(ctx, rest)
	})
}

// finish is what comes when all that has to be done now is done: by graph, the last one. A kubeconfig that could not be
// written keeps nothing of it from being done.
func (s *session) finish(ctx context.Context, g *graph.Graph) error {
	now, later := g.At(graph.First, graph.Proof), g.At(graph.Last)
	unwritten := s.kubeconfig(ctx, !now.Empty())
	if unwritten != nil && !unwritable(unwritten) {
		return unwritten
	}
	if err := s.proveNew(ctx, now); err != nil {
		return errors.Join(unwritten, err)
	}
	s.tellLeftOut(later)
	later.Steps = slices.DeleteFunc(later.Steps, func(step *graph.Step) bool { return s.facts[step.Host] == nil })
	_, err := s.engine().Execute(ctx, later)
	return errors.Join(unwritten, err)
}

// unwritable reports whether the kubeconfig of a cluster has no place on this machine.
func unwritable(err error) bool {
	return errors.Is(err, &reason.Error{ID: reason.KubeconfigConflict}) || errors.Is(err, &reason.Error{ID: reason.KubeconfigUnwritable})
}

func (s *session) plan() (*graph.Graph, error) {
	up := plan.Up
	if s.Adopt {
		up = plan.UpAdopting
	}
	g, err := up(s.Inventory, s.facts)
	if err != nil {
		return nil, err
	}
	g.Kubernetes = s.kubernetes
	g.Pace(max(s.MaxUnavailable, 1))
	g.Warnings = append(g.Warnings, s.agedCatalog()...)
	selected, err := g.Select(s.Only, s.Skip)
	if usage := (*reason.UsageError)(nil); s.left != nil && errors.As(err, &usage) {
		return &graph.Graph{}, nil // the hosts that had such a step were left out
	}
	return selected, err
}

// agedCatalog warns of a kgpu whose knowledge of versions, drivers and repositories is old.
func (s *session) agedCatalog() []string {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if !catalog.Aged(now()) {
		return nil
	}
	return []string{"what this kgpu knows of versions, drivers and repositories is of " + catalog.AsOf.Format(time.DateOnly) + ", more than six months ago: take a newer kgpu"}
}
