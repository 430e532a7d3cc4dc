package bootstrap

import (
	"context"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/session"
)

// RenewCertificates renews the certificates of all control planes, one after the other, and brings the administrator's kubeconfig
// here up to date. sure is called with the plan before anything is touched.
func RenewCertificates(ctx context.Context, o Options, sure func(*graph.Graph) error) error {
	open, err := session.OpenToChange(ctx, o.Options, o.Inventory.ControlPlanes(), nil)
	if err != nil {
		return err
	}
	s := &story{Session: open, want: o}
	defer s.Close()
	return session.Change{
		Leftover: (*session.Session).Attach,
		Plan:     func() (*graph.Graph, error) { return plan.RenewCertificates(s.Inventory, s.Facts) },
		Ask: func(_ context.Context, g *graph.Graph) error {
			if err := s.cluster().MayFetch(true, false); err != nil {
				return err
			}
			return sure(g)
		},
		Do: func(ctx context.Context, g *graph.Graph) error {
			if _, err := s.Execute(ctx, g); err != nil {
				return err
			}
			return s.cluster().Fetch(ctx, true)
		},
	}.Run(ctx, s.Session)
}
