package machine

import (
	"cmp"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Versions are the Kubernetes versions of a cluster.
type Versions struct {
	Running inventory.Version // of its control plane; zero if there is no cluster or it is made anew
	Wanted  inventory.Version // the inventory's pinned version, else the running one, else the catalog's
}

// findVersions compares the inventory's version with the running one. Unless the inventory pins another, a cluster
// keeps its version, even if kgpu knows a newer patch: the version is chosen once, when a cluster is made.
func (s *Set) findVersions() Versions {
	v := Versions{Wanted: s.Inventory.Kubernetes.Version}
	if s.First == nil || s.controlPlaneVerdict(s.First).Membership == Rejoin {
		return v
	}
	v.Running = RunningVersion(s.First.Facts)
	pin := s.Inventory.Kubernetes.Pin
	if v.Known() && (pin == inventory.NotPinned || pin == inventory.PinnedMinor && v.Running.Minor == v.Wanted.Minor) {
		v.Wanted = v.Running
	}
	return v
}

// RunningVersion is the version of a control plane: of its API server, or, if that image's tag is no version, of its kubelet,
// which is never newer. Source: https://kubernetes.io/releases/version-skew-policy/.
func RunningVersion(f *facts.Host) inventory.Version {
	if f.ControlPlane == nil {
		return inventory.Version{}
	}
	return cmp.Or(parsedVersion(f.ControlPlane.Version), KubeletVersion(f))
}

// parsedVersion parses an exact version; zero if s is none.
func parsedVersion(s string) inventory.Version {
	v, err := catalog.ParseVersion(s)
	if err != nil {
		return inventory.Version{}
	}
	return v
}

// KubeletVersion is the version of the host's kubelet package; zero if it is not installed.
func KubeletVersion(f *facts.Host) inventory.Version {
	upstream, _, _ := strings.Cut(f.Packages["kubelet"].Version, "-")
	return parsedVersion(upstream)
}

// Known reports whether the running version is one of the catalog's minors.
func (v Versions) Known() bool {
	_, ok := catalog.Kubernetes(v.Running.Minor)
	return ok && !v.Running.IsZero()
}

// VersionOf is the Kubernetes version of a machine's packages: a node keeps its own, whatever the cluster runs, unless an upgrade
// changes it.
func (s *Set) VersionOf(m *Machine) inventory.Version {
	if s.Keeps(m) && !s.Lags(m) {
		return cmp.Or(KubeletVersion(m.Facts), s.Inventory.Kubernetes.Version)
	}
	return s.Inventory.Kubernetes.Version
}

// Keeps reports whether the machine is a node that keeps its membership, or that may still have pods.
func (s *Set) Keeps(m *Machine) bool {
	v := s.Verdict(m)
	return m.InCluster() && (v.Membership != Rejoin || v.Drain)
}

// Skewed describes, by host ID, the nodes whose kubelet has another version than the cluster, and which no upgrade that is planned
// brings there.
func (s *Set) Skewed() map[string]string {
	out := map[string]string{}
	for _, m := range s.Machines {
		has, cluster := s.VersionOf(m), s.Versions.Running
		if s.Verdict(m).Refused != "" || cluster.IsZero() || has == cluster || s.Lags(m) || len(m.Facts.Busy) > 0 {
			continue
		}
		remedy := "with `kubernetes: {version: " + cluster.String() + "}` in the inventory, kgpu brings it along"
		if has.Compare(cluster) > 0 {
			remedy = "kgpu brings no node back"
		}
		out[m.ID()] = fmt.Sprintf("node %s has Kubernetes %s, and the cluster runs %s: %s", m.NodeName(), has, cluster, remedy)
	}
	return out
}
