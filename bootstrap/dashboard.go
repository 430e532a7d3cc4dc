package bootstrap

import (
	"context"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Dashboard deploys the dashboard, and access.OpenDashboard opens it. It returns, for people, what has become of it.
func Dashboard(ctx context.Context, o Options, admin bool) (string, error) {
	return "done: the dashboard is deployed", o.dashboard(ctx, func(s *session.Session) (*graph.Graph, error) {
		if v := machine.SetOf(s.Inventory, s.Facts).Inventory.Kubernetes.Version; v.Minor < plan.DashboardSince {
			return nil, reason.Usagef("the dashboard needs Kubernetes 1.%d or newer, and the cluster has %s", plan.DashboardSince, v)
		}
		return plan.Dashboard(s.Inventory, s.Facts, admin)
	})
}

// RemoveDashboard deletes the dashboard with all that it needed.
func RemoveDashboard(ctx context.Context, o Options) (string, error) {
	return "done: the dashboard is gone", o.dashboard(ctx, func(s *session.Session) (*graph.Graph, error) {
		return plan.RemoveDashboard(s.Inventory, s.Facts)
	})
}

// dashboard carries out what is planned.
func (o Options) dashboard(ctx context.Context, planned func(*session.Session) (*graph.Graph, error)) error {
	return session.OnPlanes(ctx, o.Options, func(ctx context.Context, s *session.Session) error {
		g, err := planned(s)
		if err == nil {
			_, err = s.Execute(ctx, g)
		}
		return err
	})
}
