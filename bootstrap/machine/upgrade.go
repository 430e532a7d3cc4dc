package machine

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/inventory"
)

// OldestUpgraded is the oldest minor whose clusters kgpu brings to a newer version.
const OldestUpgraded = 30

// Upgrade lists the versions that an upgrade brings the cluster to, one after the other, each a round of its own: kubeadm skips
// no minor. It is empty if the cluster keeps what it runs: the inventory names no version, or none that the cluster can be
// brought to. If the first is what the control planes run already, some node is behind.
// Source: https://kubernetes.io/releases/version-skew-policy/.
func (s *Set) Upgrade() []inventory.Version {
	v := s.Versions
	if !v.Known() || v.Running.Minor < OldestUpgraded || v.Wanted.Compare(v.Running) < 0 {
		return nil
	}
	if s.Asked.Kubernetes.Pin == inventory.NotPinned && !s.upgradeOwed() {
		return nil
	}
	from := s.lowestPlane()
	var path []inventory.Version
	if older := s.behind(inventory.Version{Major: from.Major, Minor: from.Minor}); from.Minor < v.Wanted.Minor && len(older) > 0 {
		path = append(path, from) // the nodes that a former round left come first
		if slices.ContainsFunc(older, func(m *Machine) bool { return len(m.Facts.Busy) > 0 }) {
			return path
		}
	}
	for minor := from.Minor + 1; minor < v.Wanted.Minor; minor++ {
		m, _ := catalog.Kubernetes(minor)
		path = append(path, m.Version())
	}
	return append(path, v.Wanted)
}

// upgradeOwed reports whether an upgrade was begun on a host and did not come to its end.
func (s *Set) upgradeOwed() bool {
	return slices.ContainsFunc(s.Machines, func(m *Machine) bool { return m.Facts.Upgrading != "" })
}

// lowestPlane is the oldest version of the control planes.
func (s *Set) lowestPlane() inventory.Version {
	lowest := s.Versions.Running
	for _, m := range s.planes {
		if v := RunningVersion(m.Facts); !v.IsZero() && v.Compare(lowest) < 0 {
			lowest = v
		}
	}
	return lowest
}

// behind are the machines that are nodes of an older version.
func (s *Set) behind(than inventory.Version) (older []*Machine) {
	for _, m := range s.Machines {
		if v := KubeletVersion(m.Facts); s.Keeps(m) && !v.IsZero() && v.Compare(than) < 0 {
			older = append(older, m)
		}
	}
	return older
}

// Retarget makes the inventory that of the upgrade's next round, and returns the versions of the rounds after it.
func (s *Set) Retarget() (later []inventory.Version) {
	path := s.Upgrade()
	switch {
	case len(path) == 0:
		return nil
	case !s.APIAnswers() && (s.upgradeOwed() || path[0] != s.Versions.Running || len(s.behind(path[0])) > 0):
		return path // it comes up first
	case !s.APIAnswers():
		return path[1:]
	}
	s.Target = path[0]
	s.wants(path[0])
	return path[1:]
}

// Stay makes the inventory that of the version that runs: no upgrade begins or goes on.
func (s *Set) Stay() { s.wants(s.Versions.Running) }

func (s *Set) wants(v inventory.Version) {
	next := *s.Inventory
	next.Kubernetes.Version = v
	s.Inventory = &next
	s.Minor, _ = catalog.Kubernetes(v.Minor)
}

// Follows reports whether the machine is a node whose Kubernetes an upgrade changes.
func (s *Set) Follows(m *Machine) bool {
	v := s.Verdict(m)
	return !s.Target.IsZero() && v.Membership == Member && v.Refused == "" && s.NodeOf(m) != nil
}

// PlaneLags reports whether the control plane on the machine has not come to the version of the upgrade.
func (s *Set) PlaneLags(m *Machine) bool {
	return s.Follows(m) && m.Facts.ControlPlane != nil && (m.Facts.Upgrading == UpgradingPlane || RunningVersion(m.Facts).Compare(s.Target) < 0)
}

// What a host notes while its part of an upgrade is not at its end. scripts/lib/upgrade.sh writes it.
const (
	UpgradingPlane = "plane"
	UpgradingNode  = "node"
)

// NodeLags reports whether the node's kubelet has not come to the version of the upgrade, and which it has. One whose pods are not to
// be disturbed stays.
func (s *Set) NodeLags(m *Machine) (has inventory.Version, lags bool) {
	if !s.Follows(m) || len(m.Facts.Busy) > 0 {
		return has, false
	}
	has = KubeletVersion(m.Facts)
	if runs := parsedVersion(s.NodeOf(m).Version); !runs.IsZero() && runs.Compare(has) < 0 {
		has = runs // its package is there, and it did not restart
	}
	return has, !has.IsZero() && has.Compare(s.Target) < 0 || m.Facts.Upgrading == UpgradingNode
}

// Lags reports whether anything of the machine's Kubernetes has not come to the version of the upgrade.
func (s *Set) Lags(m *Machine) bool {
	_, node := s.NodeLags(m)
	return node || s.PlaneLags(m)
}
