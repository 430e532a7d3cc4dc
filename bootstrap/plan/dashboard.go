package plan

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// DashboardNamespace has the dashboard and nothing else.
const DashboardNamespace = "kgpu-dashboard"

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
	objects, err := decodeManifest(manifests.Dashboard)
	if err != nil {
		return nil, err
	}
	if !admin {
		objects = slices.DeleteFunc(objects, func(o object) bool {
			labels, _ := o["metadata"].(object)["labels"].(object)
			return labels["kgpu.dev/dashboard"] == DashboardAdmin
		})
	}
	b.pullFromRegistry(objects)
	manifest, err := manifests.Encode(manifest.Adapt(b.minor, objects)...)
	if err != nil {
		return nil, err
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "dashboard/deploy"}, Reason: "you asked for it",
		Input: graph.Input{Values: dashboardValues(manifest)},
	})
	return &b.graph, b.graph.Validate()
}

// dashboardValues are those of its steps.
func dashboardValues(manifest string) map[string]string {
	values := map[string]string{"title": "the dashboard", "workload": DashboardNamespace + "/deployment/headlamp", "failed": string(reason.DashboardFailed)}
	if manifest != "" {
		values["manifest"], values["awaited"] = manifest, "yes"
	}
	return values
}

// RemoveDashboard plans its end.
func RemoveDashboard(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "dashboard/remove"}, Reason: "you asked for it",
		Input: graph.Input{Values: dashboardValues("")},
	})
	return &b.graph, b.graph.Validate()
}
