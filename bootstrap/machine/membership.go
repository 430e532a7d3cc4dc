package machine

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Membership says how a host relates to the inventory's cluster. It is decided by facts: the hash of the cluster's CA
// and the UID of the node object. The ledger only tells what kgpu itself did.
type Membership string

// The memberships.
const (
	NotMember Membership = "not a member" // in no cluster: kubeadm init or join follows
	Member    Membership = "member"       // in this cluster, by kgpu's doing
	Rejoin    Membership = "rejoin"       // kgpu's, but half made or of a cluster that is gone: it leaves, and init or join follows
	Unmanaged Membership = "unmanaged"    // in this cluster, but not by kgpu's doing: adopted if the operator agrees
	Foreign   Membership = "foreign"      // made by somebody else or in another cluster: never touched
)

// Verdict is the membership of a machine and what follows from it.
type Verdict struct {
	Membership
	// Why is the plan's reason to change the membership; empty if nothing changes.
	Why string
	// Replaces means that the cluster has a node object of the host's former installation, which is deleted before it
	// joins. Drain means that this node may still have running pods.
	Replaces, Drain bool
	// Refused is the reason to leave the host alone, empty if there is none. Detail is the evidence for it, and Advice what to do
	// where that is something else than the reason's.
	Refused        reason.ID
	Detail, Advice string
}

func notMember(why string) Verdict { return Verdict{Membership: NotMember, Why: why} }
func member(why string) Verdict    { return Verdict{Membership: Member, Why: why} }
func rejoin(why string, args ...any) Verdict {
	return Verdict{Membership: Rejoin, Why: fmt.Sprintf(why, args...)}
}
func refused(id reason.ID, evidence string, args ...any) Verdict {
	return Verdict{Membership: Foreign, Why: "it is not kgpu's", Refused: id, Detail: fmt.Sprintf(evidence, args...)}
}

// FixVerdicts fixes the verdicts of all machines. From then on NodeOf returns no node that is to be replaced.
func (s *Set) FixVerdicts() { s.verdicts = s.Verdicts() }

// Verdicts returns the verdicts of all machines by host ID.
func (s *Set) Verdicts() map[string]Verdict {
	out := map[string]Verdict{}
	for _, m := range s.Machines {
		out[m.ID()] = s.Verdict(m)
	}
	return out
}

// Verdict returns the verdict of one machine.
func (s *Set) Verdict(m *Machine) Verdict {
	if v, ok := s.verdicts[m.ID()]; ok {
		return v
	}
	if m.IsControlPlane() {
		return s.controlPlaneVerdict(m)
	}
	return s.workerVerdict(m)
}

// sameCA reports whether the CA that the ledger recorded can be that of the cluster. An empty one can: neither the
// ledger nor a half-written file says which cluster it is.
func sameCA(recorded, ca string) bool { return recorded == "" || ca == "" || recorded == ca }

// controlPlaneVerdict judges a host that is to be a control plane. It is the first's judgement too of itself, whichever that is.
func (s *Set) controlPlaneVerdict(m *Machine) Verdict {
	c, r, answers := m.Facts.ControlPlane, m.Recorded(), m.Facts.Cluster != nil
	if c == nil {
		return s.noControlPlane(m)
	}
	ours, adopted := (r.Init || r.Plane) && sameCA(r.CAHash, c.CAHash), r.Adopted && sameCA(r.CAHash, c.CAHash)
	switch {
	case s.First != nil && s.First.Facts.ControlPlane.CAHash != c.CAHash && c.CAHash != "":
		return refused(reason.HostForeignCluster, "the host is a control plane of another cluster than %s: %s", s.First.ID(), describeCluster(m.Facts))
	case ours && (c.Finished || r.Init) && s.TakenOut(m):
		return rejoin("the cluster has no node %s any more", m.NodeName())
	case (ours && c.Finished || adopted) && answers:
		return member("")
	case ours && c.Finished || adopted:
		return member("the control plane does not answer")
	case ours && r.Plane && answers && s.joinEnded(m):
		return member("kubeadm join came to its end, which is not recorded")
	case ours && r.Plane:
		return s.afterFormer(m, rejoin("kubeadm join did not come to its end"))
	case ours && answers && s.initEnded(m):
		return member("kubeadm init came to its end, which is not recorded")
	case ours && answers:
		return rejoin("kubeadm init did not come to its end")
	case ours:
		return rejoin("kubeadm init did not come to its end, and the control plane does not answer")
	case !answers:
		return refused(reason.HostHalfMade, "there is a control plane that kgpu did not make, and it does not answer: %s, %s", describeCluster(m.Facts), strings.Join(m.Facts.KubeadmFiles, ", "))
	}
	return s.unmanaged(m, "a control plane made by hand is here: "+describeCluster(m.Facts), s.unfitControlPlane(m))
}

// noControlPlane judges a host that is to be a control plane and has no admin.conf. kubeadm writes that file early,
// so either there is no control plane or somebody removed the file.
func (s *Set) noControlPlane(m *Machine) Verdict {
	f, r := m.Facts, m.Recorded()
	switch {
	case r.Init && !r.Done:
		return rejoin("kubeadm init did not come to its end")
	case r.Plane && !r.Done:
		return s.afterFormer(m, rejoin("kubeadm join did not come to its end"))
	case f.Kubelet != nil && !r.Init && s.hasControlPlaneOf(f.Kubelet.CAHash):
		return s.workerAsPlane(m)
	case f.Kubelet != nil && !r.Init:
		return refused(reason.HostForeignCluster, "the host is a worker of the cluster at %s (CA %s)", f.Kubelet.Server, shortHash(f.Kubelet.CAHash))
	case f.Etcd != nil:
		return refused(reason.HostEtcdStale, "/var/lib/etcd/member has the data of a cluster whose administrator's kubeconfig is gone: %s", describeEtcd(f))
	case r.Join && !r.Done:
		return rejoin("kubeadm join did not come to its end")
	case len(f.KubeadmFiles) > 0 && !m.partlyRemoved():
		return refused(reason.HostHalfMade, "there is a part of a cluster, without an administrator's kubeconfig: %s", strings.Join(f.KubeadmFiles, ", "))
	case r.Init:
		return rejoin("the control plane that kgpu made is gone")
	case r.Join:
		return s.afterFormer(m, rejoin("the host has left the cluster that kgpu joined it to"))
	}
	if s.ClusterExists() {
		return s.afterFormer(m, notMember("the cluster does not have this control plane yet"))
	}
	return notMember("there is no control plane yet")
}

// workerAsPlane refuses a worker that the inventory has as a control plane. One with etcd's data has lost its kubeconfig, and is none.
func (s *Set) workerAsPlane(m *Machine) Verdict {
	v := refused(reason.ClusterSettingFixed, "%s: the host is a worker of the cluster, and the inventory wants it to be a control plane", s.placeOfRole(m))
	if m.Facts.Etcd == nil {
		v.Advice = fmt.Sprintf("make it a worker in the inventory again; `kgpu remove-worker %s`, then `kgpu add-control-plane %s`, make a control plane of it", m.ID(), m.Address)
	}
	return v
}

// afterFormer adds to a verdict that the cluster has a node of the host's former installation. It refuses a node that is another
// machine's.
func (s *Set) afterFormer(m *Machine, v Verdict) Verdict {
	node := s.NodeOf(m)
	switch {
	case node == nil:
	case node.Ready && s.nodeElsewhere(m, node):
		return refused(reason.HostNameDuplicate, "the cluster has a node %s already, another machine at %s", node.Name, node.InternalIP)
	default:
		v.Why += "; the node object " + node.Name + " is of a former one"
		v.Replaces = true
	}
	return v
}

// Adopted reports whether the membership was made by hand and kgpu adopted it.
func (m *Machine) Adopted() bool { return m.Recorded().Adopted && m.InCluster() }

// Remade is the evidence that somebody made another cluster on the host after kgpu did; empty if nobody did.
func (m *Machine) Remade() string {
	r, ca := m.Recorded(), ""
	switch f := m.Facts; {
	case f.ControlPlane != nil:
		ca = f.ControlPlane.CAHash
	case f.Kubelet != nil:
		ca = f.Kubelet.CAHash
	}
	joined := r.Join && !r.Plane && !r.Init && m.Facts.ControlPlane != nil // as a worker
	if ca == "" || sameCA(r.CAHash, ca) && !joined {
		return ""
	}
	return fmt.Sprintf("the host is in a cluster (CA %s) that somebody made there since kgpu's (CA %s)", shortHash(ca), shortHash(r.CAHash))
}

// partlyRemoved reports whether the host looks like a worker whose removal by kgpu was interrupted.
func (m *Machine) partlyRemoved() bool {
	return m.Recorded().Join && !slices.ContainsFunc(m.Facts.KubeadmFiles, func(p string) bool { return strings.HasPrefix(p, "/etc/kubernetes/manifests/") })
}

// initEnded reports whether kubeadm init finished on a host whose API server answers. The add-ons are what init makes
// last.
func (s *Set) initEnded(m *Machine) bool {
	c := m.Facts.Cluster
	_, proxy := c.Workloads["kube-system/daemonset/kube-proxy"]
	_, dns := c.Workloads["kube-system/deployment/coredns"]
	_, old := c.Workloads["kube-system/deployment/kube-dns"]
	return s.NodeOf(m) != nil && proxy && (dns || old)
}

// joinEnded reports whether kubeadm join finished on a control plane: it marks the node when etcd has its member.
func (s *Set) joinEnded(m *Machine) bool {
	_, marked := LabelOf(s.NodeOf(m), "node-role.kubernetes.io/control-plane")
	return marked && m.Facts.Etcd != nil && slices.Contains(m.Facts.KubeadmFiles, "/etc/kubernetes/manifests/etcd.yaml")
}

// workerVerdict judges a host that is to be a worker.
func (s *Set) workerVerdict(m *Machine) Verdict {
	f, k, r := m.Facts, m.Facts.Kubelet, m.Recorded()
	var c *facts.ControlPlane
	if s.ClusterExists() {
		c = s.First.Facts.ControlPlane
	}
	switch {
	case f.ControlPlane != nil && s.planesTrust(f.ControlPlane.CAHash):
		return s.planeAsWorker(m)
	case f.ControlPlane != nil:
		return refused(reason.HostForeignCluster, "the host is the control plane of a cluster of its own: %s", describeCluster(f))
	case k == nil:
		return s.withoutKubeconfig(m)
	}
	ours, adopted := r.Join && sameCA(r.CAHash, k.CAHash), r.Adopted && sameCA(r.CAHash, k.CAHash)
	switch {
	case c == nil && ours && s.hadThisAddress(m):
		return rejoin("the cluster that it was in, at %s, is gone", k.Server)
	case c == nil:
		return refused(reason.HostForeignCluster, "the kubelet belongs to the cluster at %s (CA %s), and this one does not exist yet", k.Server, shortHash(k.CAHash))
	case k.CAHash == "" && ours && s.hadThisAddress(m):
		return rejoin("the kubelet's kubeconfig is half written")
	case k.CAHash != c.CAHash && ours && s.hadThisAddress(m):
		return rejoin("the cluster at %s was made anew: its CA is %s, the kubelet's %s", k.Server, shortHash(c.CAHash), shortHash(k.CAHash))
	case k.CAHash != c.CAHash:
		return refused(reason.HostForeignCluster, "the kubelet belongs to the cluster at %s (CA %s), not to this one (CA %s)", k.Server, shortHash(k.CAHash), shortHash(c.CAHash))
	case !s.APIAnswers():
		return member("") // without the API server nobody knows the nodes, so the host stays a member
	}
	return s.memberVerdict(m, ours, adopted)
}

// planeAsWorker refuses a control plane that the inventory has as a worker.
func (s *Set) planeAsWorker(m *Machine) Verdict {
	v := refused(reason.ClusterSettingFixed, "%s: the host is a control plane of the cluster, and the inventory wants it to be a worker", s.placeOfRole(m))
	v.Advice = "write `role: control-plane` for it again; a cluster whose only control plane is to be another host takes `kgpu reset` and `kgpu up`"
	another := func(p *Machine) bool {
		return p.Facts.ControlPlane != nil && p.Facts.ControlPlane.CAHash == m.Facts.ControlPlane.CAHash
	}
	if slices.ContainsFunc(s.planes, another) {
		v.Advice = fmt.Sprintf("write `role: control-plane` for it again; `kgpu remove-control-plane %s`, then `kgpu add-worker %s`, make a worker of it", m.ID(), m.Address)
	}
	return v
}

// planesTrust reports whether the kubelet of one of the control planes trusts this CA.
func (s *Set) planesTrust(ca string) bool {
	return slices.ContainsFunc(s.planes, func(m *Machine) bool { return m.Facts.Kubelet != nil && m.Facts.Kubelet.CAHash == ca })
}

// hadThisAddress reports whether the cluster of the host's kubelet had this cluster's address, perhaps under another name.
// With another address the kubelet's cluster may still exist elsewhere.
func (s *Set) hadThisAddress(m *Machine) bool {
	server, ok := strings.CutPrefix(m.Facts.Kubelet.Server, "https://")
	if s.First == nil || !ok {
		return false
	}
	name, _, err := net.SplitHostPort(server)
	at := func(plane *Machine) bool {
		return server == netip.AddrPortFrom(plane.NodeAddress(), catalog.APIPort).String()
	}
	return server == s.Endpoint() || slices.ContainsFunc(s.planes, at) ||
		err == nil && OwnAPIName(name) && s.LeadsToAPI(m.Facts, name)
}

// withoutKubeconfig judges a worker whose kubelet has no kubeconfig.
func (s *Set) withoutKubeconfig(m *Machine) Verdict {
	f, r := m.Facts, m.Recorded()
	v := notMember("the host is in no cluster")
	switch {
	case r.Join && !r.Done:
		v = rejoin("kubeadm join did not come to its end")
	case r.Init && !r.Done:
		v = rejoin("kubeadm init did not come to its end here, and it is to be a worker")
	case f.Etcd != nil && r.Init, len(f.KubeadmFiles) > 0 && !m.partlyRemoved():
		return refused(reason.HostHalfMade, "there is a part of a cluster, without a kubelet's kubeconfig: %s", strings.Join(f.KubeadmFiles, ", "))
	case r.Join:
		v = rejoin("the host has left the cluster that kgpu joined it to")
	case !s.ClusterExists():
		v = notMember("the cluster is new")
	}
	return s.afterFormer(m, v)
}

// memberVerdict judges a worker whose kubelet trusts this cluster's CA, while the API server answers.
func (s *Set) memberVerdict(m *Machine, ours, adopted bool) Verdict {
	k, r, node := m.Facts.Kubelet, m.Recorded(), s.NodeOf(m)
	switch {
	case k.NodeName != "" && k.NodeName != m.NodeName() && ours:
		return rejoin("the kubelet's certificate is that of node %s", k.NodeName)
	case k.NodeName != "" && k.NodeName != m.NodeName():
		return refused(reason.HostMadeByHand, "the host is node %s of this cluster, and kgpu did not join it; it cannot be adopted as %s: name it so in the inventory", k.NodeName, m.NodeName())
	case node == nil && ours:
		return rejoin("the cluster has no node %s", m.NodeName())
	case node == nil:
		return refused(reason.HostHalfMade, "the kubelet belongs to this cluster, which has no node %s, and kgpu did not join it: %s", m.NodeName(), strings.Join(m.Facts.KubeadmFiles, ", "))
	case s.nodeElsewhere(m, node):
		return refused(reason.HostNameDuplicate, "the cluster's node %s is another machine, at %s", node.Name, node.InternalIP)
	case ours && r.UID != "" && node.UID != r.UID:
		v := rejoin("the node object has another UID (%s, it was %s): somebody deleted the node and its kubelet made it anew", node.UID, r.UID)
		v.Replaces, v.Drain = true, true
		return v
	case ours && !adopted && !r.Done:
		return member("kubeadm join did not come to its end, and the kubelet made the node without it")
	case ours, adopted:
		return member("")
	}
	return s.unmanaged(m, fmt.Sprintf("the host is node %s of this cluster already, and kgpu did not join it", m.NodeName()), s.unfitNode(m))
}

// nodeElsewhere reports whether the node's address belongs to another machine.
func (s *Set) nodeElsewhere(m *Machine, node *facts.Node) bool {
	at, err := netip.ParseAddr(node.InternalIP)
	return err == nil && at != m.NodeAddress() && !HasAddress(m.Facts, at)
}

// unmanaged judges a working membership that kgpu did not make: it is adopted or refused.
func (s *Set) unmanaged(m *Machine, evidence string, unfit []string) Verdict {
	v := Verdict{Membership: Unmanaged, Why: "made by hand: --adopt takes it over as it is", Detail: evidence}
	switch {
	case len(unfit) > 0:
		v.Membership, v.Refused = Foreign, reason.HostMadeByHand
		v.Detail += "; it cannot be adopted: " + strings.Join(unfit, ", ")
	case !s.Adopt:
		v.Refused = reason.HostMadeByHand
		v.Detail += "; it fits the inventory"
	}
	return v
}
