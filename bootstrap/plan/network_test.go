package plan

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// Hosts talk over the network of their nodes' addresses, not over that of the default route, whatever makes the pod network.
// Weave takes the nodes' addresses by itself.
func TestPodNetworkTakesTheNodesAddresses(t *testing.T) {
	for network, want := range map[string][]string{
		"network: flannel": []string{"--iface=$(NODE_ADDRESS)", "fieldPath: status.hostIP"},
		"network: calico":  []string{"IP_AUTODETECTION_METHOD=kubernetes-internal-ip"},
	} {
		inv := decode(t, threeHosts+network)
		seen := hostFacts(inv)
		g := planUp(t, inv, seen)
		step := g.Steps[slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return strings.HasPrefix(s.ID, "addon/") })]
		text := step.Input.Values["manifest"] + step.Input.Values["environment"]
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q", network, w)
			}
		}
	}
}

// Clusters whose calico was applied without the nodes' addresses get them, once.
func TestCalicoOfFormerRuns(t *testing.T) {
	inv, seen := settled(t, threeHosts+"network: calico\n")
	workload := machine.NetworkWorkload[inv.Network]
	have := seen["cp1"].Cluster.Workloads[workload]
	for hash, planned := range map[string]bool{have.Hash: false, "": true} {
		have.Hash = hash
		seen["cp1"].Cluster.Workloads[workload] = have
		if planUp(t, inv, seen).Has("addon/calico") != planned {
			t.Errorf("hash %q: planned is not %t", hash, planned)
		}
	}
}

// The pod network is proven again where it is applied anew, and where a former run did not come to the end of its proof.
func TestNetworkProofThatIsOwed(t *testing.T) {
	inv, seen := settled(t, threeHosts+"network: flannel\n")
	ready := func(name string, want bool) {
		s := stepOf(planUp(t, inv, seen), "cp1", "cluster/ready")
		if (s != nil) != want || want && s.Input.Values["proof"] == "" {
			t.Errorf("%s: a proof is planned: %t", name, s != nil)
		}
	}
	ready("settled", false)
	seen["cp1"].NetworkUnproven = true
	ready("owed", true)
	seen["cp1"].NetworkUnproven = false
	workload := machine.NetworkWorkload[inv.Network]
	have := seen["cp1"].Cluster.Workloads[workload]
	hash := have.Hash
	have.Hash = "another"
	seen["cp1"].Cluster.Workloads[workload] = have
	ready("applied anew", true)
	have.Hash = hash
	seen["cp1"].Cluster.Workloads[workload] = have
	seen["w1"].Recorded = &facts.Record{Join: true}
	ready("a join was cut off after its node was ready, and its token's step owes the proof", true)
}

// A node may be ready before kgpu, which was killed after it joined, comes again: the note that its network is to be proven is older.
func TestNetworkProofIsOwedFromTheJoinOn(t *testing.T) {
	for more, want := range map[string]string{"network: flannel\n": "yes", "network: none\n": "", "network: flannel\nkubernetes: {version: \"1.29\", allowEndOfLife: true}\n": ""} {
		g := planUp(t, decode(t, threeHosts+more), map[string]*facts.Host{"cp1": bare(10), "w1": bare(11), "w2": bare(12)})
		owing := 0
		for _, step := range g.Steps {
			if step.ID == "cluster/token" || strings.HasPrefix(step.ID, "addon/") {
				owing++
				if got := step.Input.Values["prove"]; got != want {
					t.Errorf("%s%s: prove is %q, want %q", more, step.ID, got, want)
				}
			}
		}
		if owing == 0 {
			t.Errorf("%s: no step that begins to owe the proof", more)
		}
	}
}
