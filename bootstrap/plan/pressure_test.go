package plan

import (
	"strings"
	"testing"
)

// A node that takes no pods is told of by a plan that has nothing to do.
func TestNodeUnderPressure(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	nodes := seen["cp1"].Cluster.Nodes
	for i := range nodes {
		if nodes[i].Name == "w2" {
			nodes[i].Taints = append(nodes[i].Taints, "node.kubernetes.io/disk-pressure=:NoSchedule", "dedicated=x:NoSchedule")
		}
	}
	g := planUp(t, inv, seen)
	told := strings.Join(g.Warnings, "\n")
	if !g.Empty() || !strings.Contains(told, "w2: its node takes no new pods: disk-pressure;") || strings.Contains(told, "dedicated") {
		t.Errorf("steps %q, warnings %q", refs(g), told)
	}
}
