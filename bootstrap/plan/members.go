package plan

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Membership is what kgpu makes of the cluster that a host is in, was in or was about to be in. Facts decide, by the hash of
// the cluster's CA and the UID of the node object; the ledger only says what kgpu did itself.
type Membership string

// The memberships.
const (
	Outside Membership = "outside" // of every cluster: init or join
	Inside  Membership = "inside"  // this cluster is what it should be in
	Again   Membership = "again"   // kgpu's own, half-made or of a cluster that is gone: it leaves, and init or join follows
	ByHand  Membership = "by hand" // of this cluster, and kgpu did not do it: taken over where the operator says so
	Foreign Membership = "foreign" // neither kgpu's nor this cluster's: never touched
)

// Standing is the rule's answer for one host.
type Standing struct {
	Membership
	// Why something has to be done to the membership, as the plan tells it; empty: nothing.
	Why string
	// Replaces says that the cluster's node object is of a former life of the host: it is deleted before the host joins.
	// Drain says that it may have pods that run.
	Replaces, Drain bool
	// Refused is the reason not to go on with this host; empty: go on. Detail is the evidence.
	Refused reason.ID
	Detail  string
}

func outside(why string) Standing { return Standing{Membership: Outside, Why: why} }
func inside(why string) Standing  { return Standing{Membership: Inside, Why: why} }
func again(why string, args ...any) Standing {
	return Standing{Membership: Again, Why: fmt.Sprintf(why, args...)}
}
func refused(id reason.ID, evidence string, args ...any) Standing {
	return Standing{Membership: Foreign, Why: "it is not kgpu's", Refused: id, Detail: fmt.Sprintf(evidence, args...)}
}

// Standings applies the rule to the hosts with facts. adopt takes over what was made by hand, where that is safe.
func Standings(inv *inventory.Inventory, seen map[string]*facts.Host, adopt bool) map[string]Standing {
	b := &builder{inv: inv, adopt: adopt}
	b.enter(seen)
	out := map[string]Standing{}
	for _, h := range b.hosts {
		out[h.id] = b.standing(h)
	}
	return out
}

// judge applies the rule once and for all: from here on, a node object that goes is none.
func (b *builder) judge() {
	standings := map[string]Standing{}
	for _, h := range b.hosts {
		standings[h.id] = b.standing(h)
	}
	b.standings = standings
}

func (b *builder) standing(h *host) Standing {
	if s, ok := b.standings[h.id]; ok {
		return s
	}
	if h.IsControlPlane() {
		return b.controlPlaneStanding(h)
	}
	return b.workerStanding(h)
}

// same reports whether the ledger may speak of the cluster with this CA: neither it nor a file that was half written says
// which cluster a half-made membership is of.
func same(recorded, ca string) bool { return recorded == "" || ca == "" || recorded == ca }

// controlPlaneStanding is the rule for the host that is to be the control plane.
func (b *builder) controlPlaneStanding(h *host) Standing {
	c, r, answers := h.Facts.ControlPlane, h.Recorded(), h.Facts.Cluster != nil
	if c == nil {
		return b.noControlPlane(h)
	}
	ours, adopted := r.Init && same(r.CAHash, c.CAHash), r.Adopted && same(r.CAHash, c.CAHash)
	switch {
	case (ours && c.Finished || adopted) && answers:
		return inside("")
	case ours && c.Finished || adopted:
		return inside("the control plane does not answer")
	case ours && answers && b.initEnded(h):
		return inside("kubeadm init came to its end, which is not recorded")
	case ours && answers:
		return again("kubeadm init did not come to its end")
	case ours:
		return again("kubeadm init did not come to its end, and the control plane does not answer")
	case !answers:
		return refused(reason.HostHalfMade, "there is a control plane that kgpu did not make, and it does not answer: %s, %s", describeCluster(h.Facts), strings.Join(h.Facts.KubeadmFiles, ", "))
	}
	return b.byHand(h, "a control plane made by hand is here: "+describeCluster(h.Facts), b.unfitControlPlane(h))
}

// noControlPlane is the rule for a control plane's host that has no administrator's kubeconfig: kubeadm writes it early, so
// there is no control plane, or somebody took its kubeconfig away.
func (b *builder) noControlPlane(h *host) Standing {
	f, r := h.Facts, h.Recorded()
	switch {
	case r.Init && !r.Done:
		return again("kubeadm init did not come to its end")
	case f.Kubelet != nil && !r.Init && b.hasControlPlaneOf(f.Kubelet.CAHash):
		return refused(reason.ClusterSettingFixed, "%s: the host is a worker of the cluster, and the inventory wants it to be the control plane", b.placeOfRole(h))
	case f.Kubelet != nil && !r.Init:
		return refused(reason.HostForeignCluster, "the host is a worker of the cluster at %s (CA %s)", f.Kubelet.Server, brief(f.Kubelet.CAHash))
	case f.Etcd != nil:
		return refused(reason.HostEtcdStale, "/var/lib/etcd/member has the data of a cluster whose administrator's kubeconfig is gone: %s", describeEtcd(f))
	case r.Join && !r.Done:
		return again("kubeadm join did not come to its end")
	case len(f.KubeadmFiles) > 0 && !h.left():
		return refused(reason.HostHalfMade, "there is a part of a cluster, without an administrator's kubeconfig: %s", strings.Join(f.KubeadmFiles, ", "))
	case r.Init:
		return again("the control plane that kgpu made is gone")
	case r.Join:
		return again("the host has left the cluster that kgpu joined it to")
	}
	return outside("there is no control plane yet")
}

// left reports whether what is there may be what a worker has that kgpu was taking out of its cluster when it was stopped.
func (h *host) left() bool {
	return h.Recorded().Join && !slices.ContainsFunc(h.Facts.KubeadmFiles, func(p string) bool { return strings.HasPrefix(p, "/etc/kubernetes/manifests/") })
}

// initEnded reports whether the host's API server, which answers, has all that kubeadm init makes there: the add-ons are its last work.
func (b *builder) initEnded(h *host) bool {
	c := h.Facts.Cluster
	_, proxy := c.Workloads["kube-system/daemonset/kube-proxy"]
	_, dns := c.Workloads["kube-system/deployment/coredns"]
	_, old := c.Workloads["kube-system/deployment/kube-dns"]
	return b.nodeOf(h) != nil && proxy && (dns || old)
}

// workerStanding is the rule for a host that is to be a worker.
func (b *builder) workerStanding(h *host) Standing {
	f, k, r := h.Facts, h.Facts.Kubelet, h.Recorded()
	var c *facts.ControlPlane
	if b.made() {
		c = b.first.Facts.ControlPlane
	}
	switch {
	case f.ControlPlane != nil && b.trusts(f.ControlPlane.CAHash):
		return refused(reason.ClusterSettingFixed, "%s: the host is the control plane of the cluster, and the inventory wants it to be a worker", b.placeOfRole(h))
	case f.ControlPlane != nil:
		return refused(reason.HostForeignCluster, "the host is the control plane of a cluster of its own: %s", describeCluster(f))
	case k == nil:
		return b.withoutKubeconfig(h)
	}
	ours, adopted := r.Join && same(r.CAHash, k.CAHash), r.Adopted && same(r.CAHash, k.CAHash)
	switch {
	case c == nil && ours && b.former(h):
		return again("the cluster that it was in, at %s, is gone", k.Server)
	case c == nil:
		return refused(reason.HostForeignCluster, "the kubelet belongs to the cluster at %s (CA %s), and this one does not exist yet", k.Server, brief(k.CAHash))
	case k.CAHash == "" && ours && b.former(h):
		return again("the kubelet's kubeconfig is half written")
	case k.CAHash != c.CAHash && ours && b.former(h):
		return again("the cluster at %s was made anew: its CA is %s, the kubelet's %s", k.Server, brief(c.CAHash), brief(k.CAHash))
	case k.CAHash != c.CAHash:
		return refused(reason.HostForeignCluster, "the kubelet belongs to the cluster at %s (CA %s), not to this one (CA %s)", k.Server, brief(k.CAHash), brief(c.CAHash))
	case !b.answers():
		return inside("") // nobody can say what nodes there are: the member stays what it is
	}
	return b.memberStanding(h, ours, adopted)
}

// trusts reports whether the kubelet of a control plane is of the cluster with this CA.
func (b *builder) trusts(ca string) bool {
	return slices.ContainsFunc(b.planes, func(h *host) bool { return h.Facts.Kubelet != nil && h.Facts.Kubelet.CAHash == ca })
}

// former reports whether the cluster of the host's kubelet had the address of this one, which may have another name since. Another
// address may be of a cluster that lives.
func (b *builder) former(h *host) bool {
	server, ok := strings.CutPrefix(h.Facts.Kubelet.Server, "https://")
	if b.first == nil || !ok {
		return false
	}
	name, _, err := net.SplitHostPort(server)
	at := func(plane *host) bool { return server == netip.AddrPortFrom(plane.addr, apiPort).String() }
	return server == b.endpoint() || slices.ContainsFunc(b.planes, at) ||
		err == nil && machine.OwnAPIName(name) && b.leadsToAPI(h.Facts, name)
}

// withoutKubeconfig is the rule for a worker whose kubelet has no cluster.
func (b *builder) withoutKubeconfig(h *host) Standing {
	f, r := h.Facts, h.Recorded()
	s := outside("the host is in no cluster")
	switch {
	case r.Join && !r.Done:
		s = again("kubeadm join did not come to its end")
	case r.Init && !r.Done:
		s = again("kubeadm init did not come to its end here, and it is to be a worker")
	case f.Etcd != nil && r.Init, len(f.KubeadmFiles) > 0 && !h.left():
		return refused(reason.HostHalfMade, "there is a part of a cluster, without a kubelet's kubeconfig: %s", strings.Join(f.KubeadmFiles, ", "))
	case r.Join:
		s = again("the host has left the cluster that kgpu joined it to")
	case !b.made():
		s = outside("the cluster is new")
	}
	node := b.nodeOf(h)
	switch {
	case node == nil:
	case node.Ready && b.elsewhere(h, node):
		return refused(reason.HostNameDuplicate, "the cluster has a node %s already, another machine at %s", node.Name, node.InternalIP)
	default:
		s.Why += "; the node object " + node.Name + " is of a former one"
		s.Replaces = true
	}
	return s
}

// memberStanding is the rule for a worker whose kubelet trusts this cluster, which answers.
func (b *builder) memberStanding(h *host, ours, adopted bool) Standing {
	k, r, node := h.Facts.Kubelet, h.Recorded(), b.nodeOf(h)
	switch {
	case k.NodeName != "" && k.NodeName != h.node && ours:
		return again("the kubelet's certificate is that of node %s", k.NodeName)
	case k.NodeName != "" && k.NodeName != h.node:
		return refused(reason.HostMadeByHand, "the host is node %s of this cluster, and kgpu did not join it; it cannot be adopted as %s: name it so in the inventory", k.NodeName, h.node)
	case node == nil && ours:
		return again("the cluster has no node %s", h.node)
	case node == nil:
		return refused(reason.HostHalfMade, "the kubelet belongs to this cluster, which has no node %s, and kgpu did not join it: %s", h.node, strings.Join(h.Facts.KubeadmFiles, ", "))
	case b.elsewhere(h, node):
		return refused(reason.HostNameDuplicate, "the cluster's node %s is another machine, at %s", node.Name, node.InternalIP)
	case ours && r.UID != "" && node.UID != r.UID:
		s := again("the node object has another UID (%s, it was %s): somebody deleted the node and its kubelet made it anew", node.UID, r.UID)
		s.Replaces, s.Drain = true, true
		return s
	case ours && !adopted && !r.Done:
		return inside("kubeadm join did not come to its end, and the kubelet made the node without it")
	case (ours || adopted) && len(h.NotRunning("kubelet.service")) > 0:
		return inside("the kubelet does not run")
	case ours, adopted:
		return inside("")
	}
	return b.byHand(h, fmt.Sprintf("the host is node %s of this cluster already, and kgpu did not join it", h.node), b.unfitNode(h))
}

// elsewhere reports whether the node is a machine with an address that this host does not have.
func (b *builder) elsewhere(h *host, node *facts.Node) bool {
	at, err := netip.ParseAddr(node.InternalIP)
	return err == nil && at != h.addr && !machine.HasAddress(h.Facts, at)
}

// byHand is the rule for what works and was not made by kgpu.
func (b *builder) byHand(h *host, evidence string, unfit []string) Standing {
	s := Standing{Membership: ByHand, Why: "made by hand: --adopt takes it over as it is", Detail: evidence}
	switch {
	case len(unfit) > 0:
		s.Membership, s.Refused = Foreign, reason.HostMadeByHand
		s.Detail += "; it cannot be adopted: " + strings.Join(unfit, ", ")
	case !b.adopt:
		s.Refused = reason.HostMadeByHand
		s.Detail += "; it fits the inventory"
	}
	return s
}
