package plan

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// DashboardNamespace has the dashboard and nothing else.
const DashboardNamespace = "kgpu-dashboard"

const dashboardStep = "addon/dashboard"

// DashboardSince is the first minor that kgpu deploys the dashboard to: `kubectl create token` is since then.
const DashboardSince = 24

// ServiceAccounts whose tokens let somebody into the dashboard.
const (
	DashboardViewer = "viewer"
	DashboardAdmin  = "admin"
)

// Dashboard plans the deployment of the dashboard, whether or not it is there; with the account of an administrator where that
// is wanted. One that is there stays: a token for it can be had by administrators only.
func Dashboard(inv *inventory.Inventory, seen map[string]*facts.Host, admin bool) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	a := addonOf(dashboardStep)
	if admin {
		a.fit = nil
	}
	values, _, err := b.addonValues(&a)
	if err != nil {
		return nil, err
	}
	b.applyAddon(&a, "you asked for it", values, nil)
	return &b.graph, b.graph.Validate()
}

// withoutAdmin leaves out the account of an administrator.
func withoutAdmin(_ *builder, objects []object) ([]object, error) {
	return slices.DeleteFunc(objects, func(o object) bool {
		labels, _ := o["metadata"].(object)["labels"].(object)
		return labels["kgpu.dev/dashboard"] == DashboardAdmin
	}), nil
}

// RemoveDashboard plans its end.
func RemoveDashboard(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	a := addonOf(dashboardStep)
	b.removeAddon(&a, "you asked for it")
	return &b.graph, b.graph.Validate()
}
