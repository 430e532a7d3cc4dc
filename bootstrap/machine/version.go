package machine

import (
	"cmp"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Versions are of a cluster's Kubernetes.
type Versions struct {
	Running inventory.Version // that its control plane runs; zero: there is no cluster yet, or one that is made anew
	Wanted  inventory.Version // that it should run: the inventory's pin, else the running one, else the catalog's
}

// findVersions holds the inventory's version against the running one. What a cluster runs counts, whatever newer patch kgpu has
// come to know, unless the inventory names another: a version for a cluster is chosen once, when it is made.
func (s *Set) findVersions() Versions {
	v := Versions{Wanted: s.Inventory.Kubernetes.Version}
	if s.First == nil || s.controlPlaneVerdict(s.First).Membership == Rejoin {
		return v
	}
	v.Running = runs(s.First.Facts)
	pin := s.Inventory.Kubernetes.Pin
	if v.Known() && (pin == inventory.NotPinned || pin == inventory.PinnedMinor && v.Running.Minor == v.Wanted.Minor) {
		v.Wanted = v.Running
	}
	return v
}

// runs is the version of a control plane: of its API server, whose image may be named by something else than a version, or else
// of its kubelet, which is never newer. Source: https://kubernetes.io/releases/version-skew-policy/.
func runs(f *facts.Host) inventory.Version {
	if f.ControlPlane == nil {
		return inventory.Version{}
	}
	return cmp.Or(parsedVersion(f.ControlPlane.Version), kubeletVersion(f))
}

// parsedVersion is zero for what is none.
func parsedVersion(s string) inventory.Version {
	v, err := catalog.ParseVersion(s)
	if err != nil {
		return inventory.Version{}
	}
	return v
}

// kubeletVersion is that of the host's package; zero: there is none.
func kubeletVersion(f *facts.Host) inventory.Version {
	upstream, _, _ := strings.Cut(f.Packages["kubelet"].Version, "-")
	return parsedVersion(upstream)
}

// Known reports whether there is a cluster of a version that kgpu knows.
func (v Versions) Known() bool {
	_, ok := catalog.Kubernetes(v.Running.Minor)
	return ok && !v.Running.IsZero()
}

// VersionOf is that of the host's own packages: a node keeps what it has, whatever the rest of the cluster runs.
func (s *Set) VersionOf(m *Machine) inventory.Version {
	if s.Keeps(m) {
		return cmp.Or(kubeletVersion(m.Facts), s.Inventory.Kubernetes.Version)
	}
	return s.Inventory.Kubernetes.Version
}

// Keeps reports whether the host is a node that may have pods: not one that is made, or joined, anew.
func (s *Set) Keeps(m *Machine) bool {
	v := s.Verdict(m)
	return m.InCluster() && (v.Membership != Rejoin || v.Drain)
}

// Skewed tells of the nodes whose kubelet is of another version than the cluster, by host ID. kgpu leaves them as they are.
func (s *Set) Skewed() map[string]string {
	out := map[string]string{}
	for _, m := range s.Machines {
		has, cluster := s.VersionOf(m), s.Versions.Running
		if s.Verdict(m).Refused == "" && !cluster.IsZero() && has != cluster {
			out[m.ID()] = fmt.Sprintf("node %s has Kubernetes %s, and the cluster runs %s: kgpu changes no version of a node", m.NodeName(), has, cluster)
		}
	}
	return out
}
