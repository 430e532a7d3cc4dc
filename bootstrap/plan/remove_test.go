package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
)

const nameless = `
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11}
  - {address: gpu2.example}
runtime: containerd
network: flannel
`

// serving is a cluster that kgpu made of hosts, as facts tell of it.
func serving(t *testing.T, yaml string) (seen map[string]*facts.Host, remove func(force bool, ids ...string) (string, *graph.Graph, error)) {
	t.Helper()
	inv, seen := settled(t, yaml)
	for _, f := range seen {
		f.Ledger = 7
	}
	return seen, func(force bool, ids ...string) (string, *graph.Graph, error) {
		g, left, err := Remove(inv, seen, ids, force)
		if err != nil {
			return "", nil, err
		}
		for _, id := range ids {
			for _, ref := range left[id] {
				if i := slices.Index(refs(g), ref.String()); i < 0 {
					t.Errorf("%s has left after %s, which is not planned", id, ref)
				}
			}
		}
		return strings.Join(refs(g), ", "), g, nil
	}
}

func TestRemove(t *testing.T) {
	const both = "runtime: containerd\nnetwork: flannel\n"
	for name, c := range map[string]struct {
		ids    []string
		force  bool
		change func(seen map[string]*facts.Host)
		want   string
		drains string // nodes whose pods are to be agreed about
	}{
		"one":  {ids: []string{"w2"}, want: "cp1 node/drain/w2, cp1 node/delete/w2, w2 host/reset", drains: "w2"},
		"both": {ids: []string{"w2", "w1"}, want: "cp1 node/drain/w1, cp1 node/delete/w1, w1 host/reset, cp1 node/drain/w2, cp1 node/delete/w2, w2 host/reset", drains: "w1 w2"},
		"not a node any more": {ids: []string{"w2"}, change: func(seen map[string]*facts.Host) {
			c := seen["cp1"].Cluster
			c.Nodes = slices.DeleteFunc(c.Nodes, func(n facts.Node) bool { return n.Name == "w2" })
		}, want: "w2 host/reset"},
		"not ready": {ids: []string{"w2"}, change: unready("w2"), want: "cp1 node/drain/w2, cp1 node/delete/w2, w2 host/reset", drains: "w2"},
		"not ready, by force": {ids: []string{"w2"}, force: true, change: unready("w2"),
			want: "cp1 node/delete/w2, w2 host/reset", drains: "w2"},
		"not reached": {ids: []string{"w2"}, force: true, change: func(seen map[string]*facts.Host) { unready("w2")(seen); delete(seen, "w2") },
			want: "cp1 node/delete/w2", drains: "w2"},
		"not reached, and alive": {ids: []string{"w2"}, force: true, change: func(seen map[string]*facts.Host) { delete(seen, "w2") },
			want: "cp1 node/delete/w2", drains: "w2"},
		"nothing is left": {ids: []string{"w2"}, change: func(seen map[string]*facts.Host) {
			c := seen["cp1"].Cluster
			c.Nodes = slices.DeleteFunc(c.Nodes, func(n facts.Node) bool { return n.Name == "w2" })
			seen["w2"].Ledger = 0
		}},
		"made by hand": {ids: []string{"w2"}, change: func(seen map[string]*facts.Host) {
			seen["w2"].Recorded = &facts.Record{Adopted: true, CAHash: seen["w2"].Kubelet.CAHash}
		}, want: "w2 host/reset"},
	} {
		t.Run(name, func(t *testing.T) {
			seen, remove := serving(t, threeHosts+both)
			if c.change != nil {
				c.change(seen)
			}
			got, g, err := remove(c.force, c.ids...)
			if err != nil || got != c.want {
				t.Fatalf("planned %q, want %q (%v)", got, c.want, err)
			}
			if nodes, _ := g.DrainedNodes(); strings.Join(nodes, " ") != c.drains {
				t.Errorf("pods of %q are disturbed, want %q", nodes, c.drains)
			}
		})
	}
}

func unready(node string) func(map[string]*facts.Host) {
	return func(seen map[string]*facts.Host) {
		for i, n := range seen["cp1"].Cluster.Nodes {
			if n.Name == node {
				seen["cp1"].Cluster.Nodes[i].Ready = false
			}
		}
	}
}

// The node of a host that cannot be asked is found by its address, and never guessed.
func TestRemoveOfTheNameless(t *testing.T) {
	seen, remove := serving(t, nameless)
	for i := range seen["cp1"].Cluster.Nodes {
		if n := &seen["cp1"].Cluster.Nodes[i]; n.Name == "" {
			n.Name = "host" + strings.TrimPrefix(n.InternalIP, "10.0.0.")
		}
	}
	delete(seen, "10.0.0.11")
	delete(seen, "gpu2.example")
	if got, _, err := remove(true, "10.0.0.11"); err != nil || got != "cp1 node/delete/host11" {
		t.Errorf("by its address: %q, %v", got, err)
	}
	_, _, err := remove(true, "gpu2.example")
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.NodeUnknown || !strings.HasSuffix(all[0].Detail, "any of: host12") {
		t.Errorf("by its DNS name: %v", err)
	}
	c := seen["cp1"].Cluster
	c.Nodes = slices.DeleteFunc(c.Nodes, func(n facts.Node) bool { return n.Name == "host12" })
	if got, _, err := remove(true, "gpu2.example"); err != nil || got != "" {
		t.Errorf("when its node is gone: %q, %v", got, err)
	}
}

func TestRemoveRefuses(t *testing.T) {
	seen, remove := serving(t, threeHosts+containerd)
	cluster := seen["cp1"].Cluster
	seen["cp1"].Cluster = nil
	if _, _, err := remove(false, "w1"); !errors.Is(err, &reason.Error{ID: reason.APIUnreachable}) {
		t.Errorf("without an API server: %v", err)
	}
	seen["cp1"].Cluster = cluster
	seen["w1"].Kubelet.CAHash, seen["w1"].Recorded = "fedcba9876543210", &facts.Record{Join: true, Done: true, CAHash: "0123"}
	if _, _, err := remove(false, "w1"); !errors.Is(err, &reason.Error{ID: reason.HostForeignCluster}) {
		t.Errorf("in another cluster: %v", err)
	}
}
