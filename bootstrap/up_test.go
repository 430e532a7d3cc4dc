package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// fresh is a story that has no connections yet.
func fresh(o Options) *story { return &story{Session: session.New(o.Options), want: o} }

// The plan says that kgpu's knowledge is old, and from when on.
func TestAgedCatalog(t *testing.T) {
	inv, err := inventory.Decode("inventory.yaml", []byte("hosts: [{address: 10.0.0.10, name: cp1, role: control-plane}]\n"),
		inventory.Options{Env: func(string) (string, bool) { return "", false }, Now: catalog.AsOf})
	must(t, err)
	f, err := facts.Fresh("debian-13", "cp1", "10.0.0.10")
	must(t, err)
	for months, want := range map[int]bool{0: false, 5: false, 7: true} {
		s := fresh(Options{Options: session.Options{Inventory: inv}, Now: func() time.Time { return catalog.AsOf.AddDate(0, months, 0) }})
		s.Facts["cp1"] = f
		g, err := s.plan()
		must(t, err)
		said := slices.ContainsFunc(g.Warnings, func(w string) bool { return strings.Contains(w, "is of "+catalog.AsOf.Format(time.DateOnly)) })
		if said != want {
			t.Errorf("after %d months: %q", months, g.Warnings)
		}
	}
}
