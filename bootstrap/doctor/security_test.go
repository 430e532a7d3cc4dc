package doctor

import (
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// TestUndefendedCluster: what an older control plane lacks is one finding, without what the inventory does not want
// either.
func TestUndefendedCluster(t *testing.T) {
	all := facts.Defences{Plugins: "NodeRestriction,DenyServiceExternalIPs", Admission: "/a", AuditLog: "/b", Encryption: "/c"}
	with := func(change func(*facts.Defences)) facts.Defences {
		d := all
		change(&d)
		return d
	}
	wanted := inventory.Security{PodSecurity: inventory.PodsBaseline, AuditLog: true, EncryptSecrets: true}
	for name, c := range map[string]struct {
		has     facts.Defences
		wants   inventory.Security
		version string
		lacks   []string
	}{
		"nothing":                    {all, wanted, "v1.36.3", nil},
		"all":                        {facts.Defences{}, wanted, "v1.36.3", []string{"admission-control", "audit-log", "DenyServiceExternalIPs", "encryption"}},
		"all that is wanted":         {facts.Defences{}, inventory.Security{PodSecurity: inventory.PodsPrivileged}, "v1.36.3", []string{"DenyServiceExternalIPs"}},
		"the log":                    {with(func(d *facts.Defences) { d.AuditLog = "" }), wanted, "v1.30.1", []string{"audit-log"}},
		"a plugin":                   {with(func(d *facts.Defences) { d.Plugins = "DenyServiceExternalIPsNot" }), wanted, "v1.36.3", []string{"DenyServiceExternalIPs"}},
		"all before 1.30":            {facts.Defences{}, wanted, "v1.29.15", nil},
		"all, of an unheard version": {facts.Defences{}, wanted, "", nil},
	} {
		w := newWorld(t)
		w.inv.Security, w.cp.ControlPlane.Defences, w.cp.ControlPlane.Version = c.wants, c.has, c.version
		var got []string
		for _, f := range w.check() {
			if f.ID == "CLUSTER_UNDEFENDED" {
				got = append(got, f.Evidence...)
			}
		}
		if len(got) != len(c.lacks) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, word := range c.lacks {
			if !strings.Contains(got[i], word) {
				t.Errorf("%s: %q, want %q", name, got, c.lacks)
			}
		}
	}
}
