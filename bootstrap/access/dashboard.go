package access

import (
	"context"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Dashboard deploys the dashboard, and OpenDashboard opens it. It returns, for people, what has become of it.
func Dashboard(ctx context.Context, o session.Options, admin bool) (string, error) {
	return "done: the dashboard is deployed", onDashboard(ctx, o, func(s *session.Session) (*graph.Graph, error) {
		if v := machine.SetOf(s.Inventory, s.Facts).Inventory.Kubernetes.Version; v.Minor < plan.DashboardSince {
			return nil, reason.Usagef("the dashboard needs Kubernetes 1.%d or newer, and the cluster has %s", plan.DashboardSince, v)
		}
		return plan.Dashboard(s.Inventory, s.Facts, admin)
	})
}

// RemoveDashboard deletes the dashboard with all that it needed.
func RemoveDashboard(ctx context.Context, o session.Options) (string, error) {
	return "done: the dashboard is gone", onDashboard(ctx, o, func(s *session.Session) (*graph.Graph, error) {
		return plan.RemoveDashboard(s.Inventory, s.Facts)
	})
}

// onDashboard carries out what is planned.
func onDashboard(ctx context.Context, o session.Options, planned func(*session.Session) (*graph.Graph, error)) error {
	return session.OnPlanes(ctx, o, func(ctx context.Context, s *session.Session) error {
		g, err := planned(s)
		if err == nil {
			_, err = s.Execute(ctx, g)
		}
		return err
	})
}

// OpenDashboard tells how the dashboard is opened, and leads there until ctx ends: no other way does.
func OpenDashboard(ctx context.Context, o session.Options, d OpenOptions) error {
	c, err := enter(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	account := plan.DashboardViewer
	if d.Admin {
		account = plan.DashboardAdmin
	}
	said, err := c.answers(ctx, "dashboard", account+"\n")
	if err != nil {
		return err
	}
	if said["service"] == "" || said["token"] == "" {
		return c.misunderstood("dashboard")
	}
	return c.tunnelTo(ctx, d, "the dashboard", said["service"], func(at string) string { return "http://" + at + "/" }, said["token"])
}
