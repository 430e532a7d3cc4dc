package plan

import (
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

const fourHosts = `cluster: lab
runtime: containerd
network: flannel
hosts:
  - {address: 10.0.0.10, name: cp2}
  - {address: 10.0.0.11, name: w1}
  - {address: 10.0.0.12, name: cp1, role: control-plane}
  - {address: 10.0.0.13, name: cp3}
`

// withPlanes gives the hosts the role of a control plane, which the inventory's check allows one only.
func withPlanes(inv *inventory.Inventory, ids ...string) *inventory.Inventory {
	for i, h := range inv.Hosts {
		inv.Hosts[i].Role = inventory.Worker
		if slices.Contains(ids, h.ID()) {
			inv.Hosts[i].Role = inventory.ControlPlane
		}
	}
	return inv
}

// hostsOf are the hosts that have a step.
func hostsOf(g *graph.Graph, id string) (out []string) {
	for _, s := range g.Steps {
		if s.ID == id {
			out = append(out, s.Host)
		}
	}
	return out
}

// noneWaitsInVain fails where a step needs one that is not planned.
func noneWaitsInVain(t *testing.T, g *graph.Graph) {
	t.Helper()
	for _, s := range g.Steps {
		for _, need := range s.Needs {
			if !slices.Contains(refs(g), need.String()) {
				t.Errorf("%s waits for %s, which is not planned", s.Ref, need)
			}
		}
	}
}

func TestThreeControlPlanesOfANewCluster(t *testing.T) {
	inv := withPlanes(decode(t, fourHosts), "cp1", "cp2", "cp3")
	seen := hostFacts(inv)
	g := planUp(t, inv, seen)
	if first, admin := machine.FirstPlane(inv, seen).ID(), machine.AdminPlane(inv, seen).ID(); first != "cp2" || admin != "cp2" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	for id, want := range map[string][]string{
		"cluster/init": {"cp2"}, "cluster/join": {"w1"}, "cluster/token": {"cp2"}, "addon/flannel": {"cp2"}, "cluster/ready": {"cp2"},
		"kube/packages": {"cp2", "w1", "cp1", "cp3"},
	} {
		if got := hostsOf(g, id); !slices.Equal(got, want) {
			t.Errorf("%s on %q, want %q", id, got, want)
		}
	}
	noneWaitsInVain(t, g)
	for _, s := range g.Steps {
		if nodes := s.Input.Values["nodes"]; s.ID == "cluster/ready" && nodes != "cp2\nw1" {
			t.Errorf("nodes that nobody makes are waited for: %q", nodes)
		}
	}
}

// The first is told by facts: who has the cluster stays it, wherever others come into the file.
func TestControlPlanesBesideOneThatRuns(t *testing.T) {
	inv := decode(t, fourHosts)
	inv.Hosts = slices.DeleteFunc(inv.Hosts, func(h inventory.Host) bool { return h.Name == "cp2" || h.Name == "cp3" })
	seen := hostFacts(inv)
	settle(t, inv, seen, planUp(t, inv, seen))

	inv = withPlanes(decode(t, fourHosts), "cp1", "cp2", "cp3")
	seen["cp2"], seen["cp3"] = bare(20), bare(23)
	g := planUp(t, inv, seen)
	if first, admin := machine.FirstPlane(inv, seen).ID(), machine.AdminPlane(inv, seen).ID(); first != "cp1" || admin != "cp1" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	for _, s := range g.Steps {
		if s.Host != "cp2" && s.Host != "cp3" || s.ID == "cluster/init" || s.ID == "cluster/join" {
			t.Errorf("planned: %s", s.Ref)
		}
	}
	noneWaitsInVain(t, g)

	// kubectl runs where an API server answers.
	seen["cp1"].Cluster, seen["cp3"].Cluster = nil, seen["cp1"].Cluster
	seen["cp3"].ControlPlane, seen["cp3"].Kubelet = seen["cp1"].ControlPlane, &facts.Member{CAHash: "ca", NodeName: "cp3"}
	if first, admin := machine.FirstPlane(inv, seen).ID(), machine.AdminPlane(inv, seen).ID(); first != "cp1" || admin != "cp3" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	if c := machine.ClusterOf(inv, seen); c != seen["cp3"].Cluster {
		t.Errorf("the cluster is %+v", c)
	}
}

func TestResetOfThreeControlPlanes(t *testing.T) {
	inv := withPlanes(decode(t, fourHosts), "cp1", "cp2", "cp3")
	seen := hostFacts(inv)
	for _, f := range seen {
		f.Ledger = 3
	}
	g, err := Reset(inv, seen, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The workers, then the other control planes, the first last; each when those before it have gone.
	hasSteps(t, g, "w1 host/reset", "cp1 host/reset", "cp3 host/reset", "cp2 host/reset")
	for i, s := range g.Steps {
		if len(s.Needs) != i {
			t.Errorf("%s after %v", s.Ref, s.Needs)
		}
	}
	if _, err := Reset(inv, seen, []string{"cp3"}); err == nil {
		t.Error("a control plane goes from under the others")
	}
}
