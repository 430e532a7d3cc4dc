package machine

import (
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// TestSetSkipsHostsWithoutFacts: hosts without facts get no verdict, and without a control plane nothing is known of a
// cluster.
func TestSetSkipsHostsWithoutFacts(t *testing.T) {
	inv, err := inventory.Decode("inventory.yaml", []byte(`
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11, name: w1}
  - {address: 10.0.0.12, name: w2}
`), inventory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]*facts.Host{"cp1": nil, "w2": {Hostname: "w2"}}
	set := SetOf(inv, seen)
	if got := set.Verdicts(); len(got) != 1 || got["w2"].Membership != NotMember {
		t.Errorf("judged: %+v", got)
	}
	if set.First != nil || set.Admin != nil || set.ClusterExists() || set.APIAnswers() || !set.Versions.Running.IsZero() || len(set.Skewed()) > 0 {
		t.Errorf("a cluster of which nobody told: %+v", set)
	}
	seen["cp1"] = &facts.Host{Hostname: "cp1", ControlPlane: &facts.ControlPlane{}, Cluster: &facts.Cluster{}}
	if set = SetOf(inv, seen); set.First == nil || set.First != set.Admin || !set.ClusterExists() || !set.APIAnswers() || len(set.Machines) != 2 {
		t.Errorf("a cluster that told: %+v", set)
	}
}
