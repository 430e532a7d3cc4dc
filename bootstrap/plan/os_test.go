package plan

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// Who has the package manager is no reason to refuse: the plan says that steps will wait.
func TestPackageManagerAtWork(t *testing.T) {
	inv := decode(t, threeHosts)
	seen := hostFacts(inv)
	host := inv.Hosts[1].ID()
	seen[host].Apt = facts.Apt{LockHolder: "unattended-upgr (pid 812)"}
	g := planUp(t, inv, seen)
	want := host + ": the package manager is held by unattended-upgr (pid 812): steps that install packages wait for it"
	if !slices.Contains(g.Warnings, want) {
		t.Errorf("warnings: %q", g.Warnings)
	}
}

// What makes ipsets brings the program that destroys them, and nothing else does.
func TestProgramOfTheSets(t *testing.T) {
	for more, want := range map[string]bool{
		"": true, "network: calico\n": true, "network: flannel\n": false, "network: none\n": false,
		"network: flannel\nkubernetes: {kubeProxyConfiguration: {mode: ipvs}}\n":     true,
		"network: flannel\nkubernetes: {kubeProxyConfiguration: {mode: nftables}}\n": false,
	} {
		inv := decode(t, threeHosts+more)
		g := planUp(t, inv, hostFacts(inv))
		for _, s := range g.Steps {
			if s.ID == "os/packages" && slices.Contains(strings.Fields(s.Input.Values["packages"]), "ipset") != want {
				t.Errorf("%q: %s gets %q", more, s.Host, s.Input.Values["packages"])
			}
		}
	}
}
