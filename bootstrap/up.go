package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// Up makes the cluster of the inventory, or carries on where a former run stopped. show is called with the plan before
// anything is touched.
func Up(ctx context.Context, o Options, show func(*graph.Graph) error) error {
	hosts, err := o.Selected()
	if err != nil {
		return err
	}
	return o.AdviseWithout(hosts, converge(ctx, o, hosts, show, func(map[string]*facts.Host) error { return nil }))
}

// Plan says what Up would do. It changes nothing.
func Plan(ctx context.Context, o Options) (*graph.Graph, error) {
	g, _, err := o.planned(ctx)
	return g, err
}

// planned is Plan, and the inventory with the version of Kubernetes that it plans for.
func (o Options) planned(ctx context.Context) (*graph.Graph, *inventory.Inventory, error) {
	hosts, err := o.Selected()
	if err != nil {
		return nil, nil, err
	}
	open, err := session.Open(ctx, o.Options, hosts)
	if err != nil {
		return nil, nil, err
	}
	s := &story{Session: open, want: o}
	defer s.Close()
	other := s.DescribeHolder()
	found := s.check(ctx)
	if found != nil && (other == "" || ctx.Err() != nil) {
		return nil, nil, found
	}
	g, err := s.planAround(ctx)
	if err != nil {
		return nil, nil, err
	}
	if other != "" {
		g.Warnings = append(g.Warnings, session.AnotherAtWork+other+"; `kgpu attach` shows the progress")
		for _, e := range reason.All(found) { // half of it may be the other's work, and gone in a moment
			g.Warnings = append(g.Warnings, e.Error())
		}
	}
	return g, s.settled(), nil
}

// converge is the story of up and add-worker: look, judge, plan, run, hand over the kubeconfig, prove the cards, and do
// what the cluster serves without. begin is called when the plan was shown, before anything on the hosts changes, with
// what was seen on them, by their IDs. Workers that are lost on the way are left out; what they failed with is in the error.
func converge(ctx context.Context, o Options, hosts []inventory.Host, show func(*graph.Graph) error, begin func(map[string]*facts.Host) error) error {
	open, err := session.OpenToChange(ctx, o.Options, hosts, nil)
	if err != nil {
		return err
	}
	s := &story{Session: open, want: o}
	defer s.Close()
	s.TolerateWorkers = true
	err = s.converge(ctx, show, begin)
	if s.Excluded != nil {
		err = errors.Join(s.Excluded, err)
	}
	return err
}

func (s *story) converge(ctx context.Context, show func(*graph.Graph) error, begin func(map[string]*facts.Host) error) error {
	return session.Change{
		Leftover: (*session.Session).Attach,
		Check:    s.check,
		Plan:     func() (*graph.Graph, error) { return s.planAround(ctx) },
		Ask: func(ctx context.Context, g *graph.Graph) error {
			now := g.InStages(graph.BeforeProof, graph.Proof)
			if err := s.cluster().MayFetch(!now.Empty(), now.Has("cluster/init")); err != nil {
				return err
			}
			if err := show(g); err != nil {
				return err
			}
			return s.agreed(ctx, g)
		},
		Do: func(ctx context.Context, g *graph.Graph) error {
			if err := begin(s.Facts); err != nil {
				return err
			}
			rest, err := s.carryOut(ctx, g)
			if err != nil {
				return err
			}
			return s.finish(ctx, rest)
		},
	}.Run(ctx, s.Session)
}

// check is preflight. Another address of the API server than the cluster has is no matter of whether hosts could have it.
func (s *story) check(ctx context.Context) error {
	if err := plan.RefuseMoved(s.Inventory, s.Facts); err != nil {
		return err
	}
	return s.preflight(ctx)
}

// preflight judges the hosts before anything on them is touched. What they tell of their repositories decides the version of a new
// cluster: once, for the whole session.
func (s *story) preflight(ctx context.Context) error {
	network, err := s.Reach(ctx)
	if err != nil {
		return err
	}
	s.Inventory, s.kubernetes = plan.ChooseVersion(s.Inventory, s.Facts, network.Offers)
	asked, told, err := s.ListenForVirtualIP(ctx)
	if err != nil {
		return err
	}
	var machines []preflight.Machine
	for _, h := range s.Inventory.Hosts {
		if f, skew := s.FactsOf(h.ID()); f != nil {
			m := preflight.Machine{
				Machine: machine.Machine{Host: h, Facts: f, Skew: skew}, RequiredEndpoints: network.Needs[h.ID()], Reach: network.Found[h.ID()], Available: network.Offers[h.ID()],
				Adopt: s.want.Adopt,
			}
			if h.ID() == asked {
				m.VirtualIP = told
			}
			machines = append(machines, m)
		}
	}
	var errs []error
	for _, p := range preflight.Check(s.next(), machines, append(s.Inventory.Ignore, s.want.Ignore...)) {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// carryOut runs what has to be done now. Where workers fail, or never come back, the cluster does without them: what is left to do
// for the other hosts is planned anew, as `--limit` would, so that their nodes get ready and their cards are proven. It returns the
// graph that was carried out to its end; an error: there is none.
func (s *story) carryOut(ctx context.Context, g *graph.Graph) (*graph.Graph, error) {
	for {
		if err := s.agreedToMore(ctx, g); err != nil {
			return nil, err
		}
		if !s.want.SkipBusy {
			g.AllowGPUEviction(s.drains)
		}
		// The notebook takes a card: the proof deploys it when the Jobs, which want all of them, are done.
		result, err := s.Execute(ctx, g.InStages(graph.BeforeProof))
		if err == nil {
			return g, nil
		}
		if err := s.ExcludeFailed(ctx, result, err); err != nil {
			return nil, err
		}
		if g, err = s.planAround(ctx); err != nil {
			return nil, err
		}
	}
}

// finish is what comes when all that has to be done now is done: by graph, the last one. A kubeconfig that could not be
// written keeps nothing of it from being done.
func (s *story) finish(ctx context.Context, g *graph.Graph) error {
	now, later := g.InStages(graph.BeforeProof, graph.Proof), g.InStages(graph.AfterProof)
	unwritten := s.cluster().Fetch(ctx, !now.Empty())
	if unwritten != nil && !unwritable(unwritten) {
		return unwritten
	}
	if err := s.proveNew(ctx, now); err != nil {
		return errors.Join(unwritten, err)
	}
	s.TellExcluded(later)
	later.Steps = slices.DeleteFunc(later.Steps, func(step *graph.Step) bool { return s.Facts[step.Host] == nil })
	_, err := s.Execute(ctx, later)
	return errors.Join(unwritten, err)
}

// unwritable reports whether the kubeconfig of a cluster has no place on this machine.
func unwritable(err error) bool {
	return errors.Is(err, &reason.Error{ID: reason.KubeconfigConflict}) || errors.Is(err, &reason.Error{ID: reason.KubeconfigUnwritable})
}

// planAround is plan, with a look at the nodes that are busy.
func (s *story) planAround(ctx context.Context) (*graph.Graph, error) {
	if err := s.findBusy(ctx); err != nil {
		return nil, err
	}
	return s.plan()
}

func (s *story) plan() (*graph.Graph, error) {
	up := plan.Up
	if s.want.Adopt {
		up = plan.UpAdopting
	}
	g, err := up(s.Inventory, s.Facts)
	if err != nil {
		return nil, err
	}
	g.Kubernetes = cmp.Or(g.Kubernetes, s.kubernetes)
	g.LimitUnavailable(max(s.want.MaxUnavailable, 1))
	if s.want.DrainTimeout > 0 {
		g.LimitDrains(s.want.DrainTimeout)
	}
	g.Warnings = append(g.Warnings, s.agedCatalog()...)
	selected, err := g.Select(s.want.Only, s.want.Skip)
	if _, usage := errors.AsType[*reason.UsageError](err); s.Excluded != nil && usage {
		return &graph.Graph{}, nil // the hosts that had such a step were left out
	}
	return selected, err
}

// findBusy notes the pods that hold GPUs with the hosts of their nodes, if those are to be left alone. A notebook is nobody's
// work that cannot begin anew.
func (s *story) findBusy(ctx context.Context) error {
	if !s.want.SkipBusy || machine.ClusterOf(s.Inventory, s.Facts) == nil {
		return nil
	}
	holders, err := s.Holders(ctx)
	if err != nil {
		return err
	}
	for _, h := range s.Inventory.Hosts {
		f := s.Facts[h.ID()]
		if f == nil {
			continue
		}
		f.Busy = slices.DeleteFunc(holders[machine.Machine{Host: h, Facts: f}.NodeName()], func(pod string) bool {
			return strings.HasPrefix(pod, catalog.NotebookNamespace+"/")
		})
	}
	return nil
}

// agedCatalog warns of a kgpu whose knowledge of versions, drivers and repositories is old.
func (s *story) agedCatalog() []string {
	now := time.Now
	if s.want.Now != nil {
		now = s.want.Now
	}
	if !catalog.Aged(now()) {
		return nil
	}
	return []string{"what this kgpu knows of versions, drivers and repositories is of " + catalog.AsOf.Format(time.DateOnly) + ", more than six months ago: take a newer kgpu"}
}
