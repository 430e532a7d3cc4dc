package records

import (
	"cmp"
	"path"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/inventory"
)

// UpgradeTimes are how long each node was without pods when its Kubernetes was last upgraded, by the newest recorded run of the inventory
// that did so; nothing if none is recorded.
func UpgradeTimes(inv *inventory.Inventory) []report.NodeTime {
	runs, _ := list(inv.Cluster)
	for _, r := range runs {
		if r.Inventory != pathOf(inv) || !r.Stepped() {
			continue
		}
		began, upgraded := map[string]time.Time{}, false
		var took []report.NodeTime
		for e := range r.Stream().All() {
			node := path.Base(e.Step)
			switch family := path.Dir(e.Step); {
			case e.Step == "kube/upgrade":
				upgraded = true
			case family == "node/drain" && e.Kind == event.StepStart:
				began[node] = e.Time
			case family == "node/uncordon" && e.Kind == event.StepDone && !began[node].IsZero():
				took = append(took, report.NodeTime{Node: node, Took: e.Time.Sub(began[node])})
			}
		}
		if upgraded && len(took) > 0 {
			slices.SortStableFunc(took, func(a, b report.NodeTime) int { return cmp.Compare(a.Node, b.Node) })
			return took
		}
	}
	return nil
}
