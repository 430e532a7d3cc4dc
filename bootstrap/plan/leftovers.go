package plan

import (
	"path"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// ownCNI are the configurations that the pod networks write, by their names below /etc/cni/net.d.
var ownCNI = map[inventory.Network][]string{
	inventory.Weave:   {"10-weave.conflist", "10-weave.conf"},
	inventory.Flannel: {"10-flannel.conflist"},
	inventory.Calico:  {"10-calico.conflist"},
}

const cniDir = "/etc/cni/net.d/"

// Leftovers are what a pod network of a former life left on a host that is a member of nothing. With it, nodes are Ready
// before their network is, and pods get addresses of the wrong range.
type Leftovers struct {
	Known   []string // of networks that kgpu applies: it knows how to remove them
	Unknown []string // configurations of others that would come before the inventory's network
}

// LeftoversOf finds them. What kgpu itself left half-made goes when it is made again, and a network that the operator brings
// is none of kgpu's business.
func LeftoversOf(network inventory.Network, f *facts.Host) Leftovers {
	var l Leftovers
	if r := f.Recorded; network == inventory.None || f.Kubelet != nil || f.ControlPlane != nil || r != nil && (r.Init || r.Join) {
		return l
	}
	l.Known = slices.Clone(f.PodLinks)
	var unknown []string
	for _, p := range f.PodNetwork {
		if known(p) {
			l.Known = append(l.Known, p)
		} else {
			unknown = append(unknown, p)
		}
	}
	l.Unknown = conflictingCNI(network, unknown)
	return l
}

// known reports whether a file is of a pod network that kgpu applies.
func known(p string) bool {
	if !strings.HasPrefix(p, cniDir) {
		return true // what flannel keeps below /run
	}
	for _, names := range ownCNI {
		if names[0] == path.Base(p) {
			return true
		}
	}
	return false
}

// conflictingCNI are the configurations that runtimes take in place of the network's own: they take the first by name. Those
// that come after it, such as podman's 87-podman-bridge.conflist, do no harm; kgpu's own are gone with the step that made them.
func conflictingCNI(network inventory.Network, paths []string) []string {
	var found []string
	for _, p := range paths {
		name := path.Base(p)
		switch {
		case !strings.HasPrefix(p, cniDir), slices.Contains(ownCNI[network], name), strings.Contains(name, "kgpu"):
		case known(p), name < ownCNI[network][0]:
			found = append(found, p)
		}
	}
	return found
}

// clean plans the removal of what former pod networks left.
func (b *builder) clean(h *host) {
	if l := LeftoversOf(b.inv.Network, h.facts); b.adopt && len(l.Known) > 0 {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "host/leftovers"}, Reason: "found " + strings.Join(l.Known, ", "),
		})
	}
}
