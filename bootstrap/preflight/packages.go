package preflight

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// kubernetes refuses hosts with packages of Kubernetes in another version that apt would not change: newer ones, and
// those that their owner holds. If kgpu worked on the host before, the hold may be its own, and the step decides.
func (c *checker) kubernetes(m Machine) {
	if m.InCluster() {
		return
	}
	want := c.inv.Kubernetes.Version
	var newer []string
	var newest catalog.Version
	for _, name := range catalog.KubernetesPackages {
		p, ok := m.Facts.Packages[name]
		upstream, _, _ := strings.Cut(p.Version, "-")
		have, err := catalog.ParseVersion(upstream)
		switch {
		case !ok || err == nil && have == want:
		case err == nil && have.Compare(want) > 0:
			newer = append(newer, name+" is "+p.Version)
			if have.Compare(newest) > 0 {
				newest = have
			}
		case p.Held && m.Facts.Ledger == 0:
			advice := fmt.Sprintf("`apt-mark unhold %s` on the host lets kgpu have its version", name)
			if err == nil {
				advice += c.versionAdvice(have)
			}
			c.problemWithAdvice(m.ID(), reason.HostPackageHeld, advice, "%s is held at %s, the inventory wants Kubernetes %s", name, p.Version, want)
		}
	}
	if len(newer) > 0 {
		advice := fmt.Sprintf("`apt-get remove --allow-change-held-packages %s` on the host lets kgpu install its own", strings.Join(catalog.KubernetesPackages, " "))
		c.problemWithAdvice(m.ID(), reason.HostPackageNewer, advice+c.versionAdvice(newest), "%s: newer than the Kubernetes %s that the host is to get", strings.Join(newer, ", "), want)
	}
}

// versionAdvice ends an advice with the version that the inventory may have. It is empty if the cluster exists.
func (c *checker) versionAdvice(v catalog.Version) string {
	if _, known := catalog.Kubernetes(v.Minor); !known || !c.set.Versions.Running.IsZero() {
		return ""
	}
	at := ""
	if c.inv.Kubernetes.Pin == inventory.PinnedExact {
		at = fmt.Sprintf(" (%s)", c.inv.At("kubernetes.version"))
	}
	return fmt.Sprintf("; or write `kubernetes: {version: %s}` into the inventory%s", v, at)
}

// toolkit refuses hosts whose owner holds an older container toolkit. A newer one is accepted.
func (c *checker) toolkit(m Machine) {
	minor, _ := catalog.Kubernetes(c.inv.Kubernetes.Version.Minor)
	if m.Facts.Ledger > 0 || len(machine.Cards(c.inv, m.Facts)) == 0 || minor.Mechanism(c.inv.Kubernetes.FeatureGates) != catalog.DevicePlugins {
		return
	}
	var names, held []string
	for _, name := range catalog.ToolkitPackages {
		if p := m.Facts.Packages[name]; p.Held && catalog.CompareDebian(p.Version, catalog.ToolkitVersion) < 0 {
			names = append(names, name)
			held = append(held, name+" is held at "+p.Version)
		}
	}
	if len(names) > 0 {
		c.problemWithAdvice(m.ID(), reason.HostPackageHeld, fmt.Sprintf("`apt-mark unhold %s` on the host lets kgpu have its version", strings.Join(names, " ")),
			"%s, kgpu wants %s or newer", strings.Join(held, ", "), catalog.ToolkitVersion)
	}
}

// shadows refuses hosts on which other programs and units take precedence over those of packages. Existing nodes are
// accepted.
func (c *checker) shadows(m Machine) {
	if !m.InCluster() && len(m.Facts.Shadows) > 0 {
		c.problem(m.ID(), reason.HostShadowed, "run instead of what packages bring: %s", strings.Join(m.Facts.Shadows, ", "))
	}
}
