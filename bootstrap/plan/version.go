package plan

import (
	"cmp"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Versions are of a cluster's Kubernetes.
type Versions struct {
	Running inventory.Version // that its control plane runs; zero: there is no cluster yet, or one that is made anew
	Wanted  inventory.Version // that it should run: the inventory's pin, else the running one, else the catalog's
}

// VersionsOf holds the inventory against the facts of its control plane. What a cluster runs counts, whatever newer patch kgpu has
// come to know, unless the inventory names another: a version for a cluster is chosen once, when it is made.
func VersionsOf(inv *inventory.Inventory, seen map[string]*facts.Host) Versions {
	b := &builder{inv: inv}
	b.enter(seen)
	return b.versions
}

// findVersions holds the inventory's version against the running one.
func (b *builder) findVersions() Versions {
	v := Versions{Wanted: b.inv.Kubernetes.Version}
	if b.first == nil || b.controlPlaneStanding(b.first).Membership == Again {
		return v
	}
	v.Running = runs(b.first.Facts)
	pin := b.inv.Kubernetes.Pin
	if v.known() && (pin == inventory.NotPinned || pin == inventory.PinnedMinor && v.Running.Minor == v.Wanted.Minor) {
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

// Settled is the inventory with what the cluster runs, where there is one: the version of Kubernetes, if kgpu knows it, and what
// stays as the cluster was made. Everything is judged and planned by what is there. Up refuses where the inventory wants another.
func Settled(inv *inventory.Inventory, seen map[string]*facts.Host) *inventory.Inventory {
	b := &builder{inv: inv}
	b.enter(seen)
	return b.inv
}

// known reports whether there is a cluster of a version that kgpu knows.
func (v Versions) known() bool {
	_, ok := catalog.Kubernetes(v.Running.Minor)
	return ok && !v.Running.IsZero()
}

// refuseVersionChange is the error of a cluster that runs another Kubernetes than it should. Packages alone do not change a
// cluster's version: its nodes would change without being drained, and kubelets could get newer than their API server.
func (b *builder) refuseVersionChange() error {
	v := b.versions
	if v.Running.IsZero() || v.Running == v.Wanted {
		return nil
	}
	detail := fmt.Sprintf("the cluster runs Kubernetes %s, and the inventory wants %s", v.Running, v.Wanted)
	if !v.known() {
		detail = fmt.Sprintf("the cluster runs Kubernetes %s, of which this kgpu knows nothing", v.Running)
	}
	if at := b.asked.At("kubernetes.version"); at != "" {
		detail = at + ": " + detail
	}
	return &reason.Error{ID: reason.KubernetesVersionChange, Host: b.first.id, Doing: "planning", Detail: detail}
}

// version is that of the host's own packages: a node keeps what it has, whatever the rest of the cluster runs.
func (b *builder) version(h *host) inventory.Version {
	if b.keeps(h) {
		return cmp.Or(kubeletVersion(h.Facts), b.inv.Kubernetes.Version)
	}
	return b.inv.Kubernetes.Version
}

// keeps reports whether the host is a node that may have pods: not one that is made, or joined, anew.
func (b *builder) keeps(h *host) bool {
	s := b.standing(h)
	return h.Member() && (s.Membership != Again || s.Drain)
}

// Skewed tells of the nodes whose kubelet is of another version than the cluster, by host ID. kgpu leaves them as they are.
func Skewed(inv *inventory.Inventory, seen map[string]*facts.Host) map[string]string {
	b := &builder{inv: inv}
	b.enter(seen)
	return b.skewed()
}

func (b *builder) skewed() map[string]string {
	out := map[string]string{}
	for _, h := range b.hosts {
		has, cluster := b.version(h), b.versions.Running
		if b.standing(h).Refused == "" && !cluster.IsZero() && has != cluster {
			out[h.id] = fmt.Sprintf("node %s has Kubernetes %s, and the cluster runs %s: kgpu changes no version of a node", h.node, has, cluster)
		}
	}
	return out
}

func (b *builder) versionWarnings() {
	skewed := b.skewed()
	for _, id := range sortedKeys(skewed) {
		b.graph.Warnings = append(b.graph.Warnings, id+": "+skewed[id])
	}
}
