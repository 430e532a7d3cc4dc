package bootstrap

import (
	"context"
	"slices"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Reset takes the named hosts (none: the whole cluster) out of the cluster and undoes what kgpu changed on them.
// confirm is called with the plan before anything is touched.
func Reset(ctx context.Context, o Options, names []string, confirm func(*graph.Graph) error) error {
	ids, hosts, err := o.Narrow(names)
	if err != nil {
		return err
	}
	if err := o.wholeOrWorkers(ids); err != nil {
		return err
	}
	s, err := session.OpenToChange(ctx, o.Options, hosts, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	whole := len(ids) == 0 || slices.ContainsFunc(ids, s.IsPlane)
	return session.Change{
		Leftover: (*session.Session).Stop,
		Plan:     func() (*graph.Graph, error) { return plan.Reset(s.Inventory, s.Facts, ids) },
		Ask:      func(_ context.Context, g *graph.Graph) error { return confirm(g) },
		Forgets:  true,
		Do: func(ctx context.Context, g *graph.Graph) error {
			result, err := s.Execute(ctx, g)
			s.TellUnreverted(result)
			switch {
			case err != nil || !whole:
				return err
			case g.Empty():
				return o.forgetRest(ctx, s)
			}
			return access.To(s, o.Kubeconfig).Forget()
		},
	}.Run(ctx, s)
}

// wholeOrWorkers refuses to take a control plane from under the workers of a cluster.
func (o Options) wholeOrWorkers(ids []string) error {
	cp, workers := "", 0
	for _, h := range o.Inventory.Hosts {
		switch named := slices.Contains(ids, h.ID()); {
		case named && h.IsControlPlane():
			cp = h.ID()
		case !named:
			workers++
		}
	}
	if cp == "" || workers == 0 {
		return nil
	}
	return o.planeStays(cp)
}

// forgetRest is the end of a reset that was cut off after its last step.
func (o Options) forgetRest(ctx context.Context, s *session.Session) error {
	// Who locks the cluster and lets go of it takes along what one that was killed has left.
	if s.AnyPlane(func(f *facts.Host) bool { return f.StaleLock }) {
		if err := s.Locked(ctx, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	if s.AnyPlane(func(f *facts.Host) bool { return f.ControlPlane != nil }) {
		return nil
	}
	return access.To(s, o.Kubeconfig).Forget()
}
