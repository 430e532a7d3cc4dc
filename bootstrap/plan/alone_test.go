package plan

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
)

const oneMachine = "cluster: lab\nhosts: [{address: 10.0.0.10, name: cp1, role: control-plane}]\nruntime: containerd\nnetwork: flannel\n"

// One machine is a cluster for pods, unless the inventory says otherwise.
func TestOneMachine(t *testing.T) {
	inv, seen := settled(t, oneMachine)
	node := &seen["cp1"].Cluster.Nodes[0]
	if len(node.Taints) > 0 {
		t.Errorf("the taints %s stay", node.Taints)
	}
	if _, there := node.Labels[noLoadBalancer]; there {
		t.Error("load balancers leave it out")
	}
	settles(t, inv, seen, &graph.Graph{})

	// One that was made with the taint loses it, and the plan says so.
	node.Taints = []string{"node-role.kubernetes.io/master:NoSchedule", "mine=x:NoSchedule"}
	g := planUp(t, inv, seen)
	if got := refs(g); !slices.Equal(got, []string{"cp1 cluster/nodes"}) || g.Steps[0].Input.Values["nodes"] != "cp1\tuntaint\tnode-role.kubernetes.io/master" ||
		!strings.Contains(g.Steps[0].Reason, "no workers") {
		t.Errorf("%s", describe(g))
	}

	// With other nodes it is not alone, whatever the inventory has.
	others := *seen["cp1"].Cluster
	others.Nodes = append(slices.Clone(others.Nodes), facts.Node{Name: "w9", Ready: true})
	seen["cp1"].Cluster = &others
	nothingLeft(t, inv, seen)

	inv, seen = settled(t, strings.Replace(oneMachine, "name: cp1", "name: cp1, taints: [\"node-role.kubernetes.io/control-plane:NoSchedule\"]", 1))
	if got := seen["cp1"].Cluster.Nodes[0].Taints; len(got) == 0 {
		t.Error("the taint is gone, and the inventory has it")
	}
	settles(t, inv, seen, &graph.Graph{})
}

// Workers that come later find the control plane as it was: open for pods, and the plan says how that ends.
func TestWorkerForOneMachine(t *testing.T) {
	_, seen := settled(t, oneMachine)
	two := strings.Replace(oneMachine, "}]", "}, {address: 10.0.0.11, name: w1}]", 1)
	inv := decode(t, two)
	seen["w1"] = bare(11)
	g := planUp(t, inv, seen)
	tells := func(w string) bool {
		return strings.Contains(w, "taints: [node-role.kubernetes.io/control-plane:NoSchedule]")
	}
	if !slices.ContainsFunc(g.Warnings, tells) {
		t.Errorf("warnings %q", g.Warnings)
	}
	settles(t, inv, seen, g)
	if got := seen["cp1"].Cluster.Nodes[0].Taints; len(got) > 0 {
		t.Errorf("it got the taints %s", got)
	}
	_, seen = settled(t, two)
	if got := seen["cp1"].Cluster.Nodes[0].Taints; len(got) != 1 {
		t.Errorf("beside workers from the start, it has the taints %s", got)
	}
}
