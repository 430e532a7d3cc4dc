package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// A cluster keeps what it was made with. Where the inventory does not say it, what runs counts, whatever the default is; where it
// says something else, nothing is planned: a half of the change would be made, or nothing of it.

// settle makes the inventory that everything is planned by. What was made by hand has to fit what the file says.
func (b *builder) settle() {
	settled := *b.inv
	if b.versions.known() {
		settled.Kubernetes.Version = b.versions.Running
	}
	if b.made() {
		if m := b.controlPlaneStanding(b.first).Membership; m != Again {
			b.settleFixed(&settled, func(key string) bool { return m == Inside || b.asked.At(key) == "" })
		}
	}
	b.inv = &settled
}

func (b *builder) settleFixed(settled *inventory.Inventory, counts func(key string) bool) {
	c := b.first.Facts.ControlPlane
	if r := runtimeOf(b.nodeOf(b.first)); r != "" && counts("runtime") {
		settled.Runtime = r
	}
	if n, _ := b.runningNetwork(); n != "" && counts("network") {
		settled.Network = n
	}
	if p, err := netip.ParsePrefix(c.PodCIDR); err == nil && counts("kubernetes.podCIDR") {
		settled.Kubernetes.PodCIDR = p
	}
	if p, err := netip.ParsePrefix(c.ServiceCIDR); err == nil && counts("kubernetes.serviceCIDR") {
		settled.Kubernetes.ServiceCIDR = p
	}
}

// runtimeOf is the container runtime of a node; empty: nobody knows, or kgpu does not know it.
func runtimeOf(n *facts.Node) inventory.Runtime {
	if n == nil {
		return ""
	}
	name, _, _ := strings.Cut(n.Runtime, ":")
	if r := inventory.Runtime(name); r == inventory.Docker || r == inventory.Containerd {
		return r
	}
	return ""
}

// runningNetwork is the pod network that the cluster has, and its sign: a workload, or the file by which runtimes find it. It is None
// for one that its owner brought, and empty where there is no sign of another than the inventory's.
func (b *builder) runningNetwork() (network inventory.Network, sign string) {
	want := b.asked.Network
	if _, ok := b.cluster.Workloads[machine.NetworkWorkload[want]]; ok {
		return want, machine.NetworkWorkload[want]
	}
	for _, n := range []inventory.Network{inventory.Calico, inventory.Flannel, inventory.Weave} {
		if w, ok := b.cluster.Workloads[machine.NetworkWorkload[n]]; ok && (want != inventory.None || w.Hash != "") {
			return n, machine.NetworkWorkload[n]
		}
	}
	if want == inventory.None {
		return "", ""
	}
	if files := machine.ConflictingCNI(want, b.first.Facts.PodNetwork); len(files) > 0 {
		for n, names := range machine.OwnCNI {
			if !b.answers() && slices.Contains(names, path.Base(files[0])) {
				return n, files[0] // there may be its workload
			}
		}
		return inventory.None, files[0]
	}
	return "", ""
}

// refuseFixed is the error of an inventory that wants something else than the cluster was made with.
func (b *builder) refuseFixed() error {
	m := b.standing(b.first).Membership
	if !b.made() || m != Inside && m != ByHand {
		return nil
	}
	r := refusals{b: b}
	r.cluster()
	r.security()
	for _, h := range b.hosts {
		if b.standing(h).Refused == "" || b.standing(h).Membership == ByHand {
			r.node(h)
		}
	}
	return errors.Join(r.errs...)
}

// refusals collects what the file says and the cluster does not do.
type refusals struct {
	b    *builder
	errs []error
}

// differs refuses a key that the file has, if its value is another than what runs. What nobody knows is not judged.
func (r *refusals) differs(h *host, key, runs, wants string) {
	at := r.b.asked.At(key)
	if at == "" || runs == "" || runs == wants {
		return
	}
	row, _ := ChangeOf(key)
	r.errs = append(r.errs, &reason.Error{
		ID: reason.ClusterSettingFixed, Host: h.id, Doing: "planning",
		Detail: fmt.Sprintf("%s: %s: the cluster has %s, and the inventory wants %s", at, key, runs, wants), Advice: row.Says,
	})
}

// clusterDiffers does so for what all nodes have in common.
func (r *refusals) clusterDiffers(key, runs, wants string) { r.differs(r.b.first, key, runs, wants) }

func (r *refusals) cluster() {
	b, c, k := r.b, r.b.first.Facts.ControlPlane, r.b.asked.Kubernetes
	if b.standing(b.first).Membership == Inside && !b.first.Recorded().Adopted {
		r.clusterDiffers("cluster", c.Name, b.asked.Cluster)
	}
	if network, sign := b.runningNetwork(); network != "" && network != b.asked.Network {
		r.clusterDiffers("network", fmt.Sprintf("%s (%s)", network, sign), string(b.asked.Network))
	}
	r.clusterDiffers("kubernetes.podCIDR", c.PodCIDR, k.PodCIDR.String())
	r.clusterDiffers("kubernetes.serviceCIDR", c.ServiceCIDR, k.ServiceCIDR.String())
	if want := k.ControlPlaneEndpoint; !strings.EqualFold(c.Endpoint, want) {
		r.clusterDiffers("kubernetes.controlPlaneEndpoint", c.Endpoint, want)
	}
	made := b.madeWith()
	for _, key := range sortedKeys(madeWithKeys(k)) {
		file := madeWithFile(key)
		if sum := b.first.Facts.Files[file]; sum != "" && sum != sha256Of(made[file].Content) {
			r.clusterDiffers(key, "what "+file+" on it says", "something else")
		}
	}
}

// security holds the API server's flags, and the file with the level of pods, against the inventory.
func (r *refusals) security() {
	b, d, s := r.b, r.b.first.Facts.ControlPlane.Defences, r.b.asked.Security
	if !b.minor.Secured() {
		return
	}
	r.clusterDiffers("security.auditLog", strconv.FormatBool(d.AuditLog != ""), strconv.FormatBool(s.AuditLog))
	r.clusterDiffers("security.encryptSecrets", strconv.FormatBool(d.Encryption != ""), strconv.FormatBool(s.EncryptSecrets))
	level := inventory.PodsPrivileged
	if d.Admission != "" {
		level = "" // unless the file is one of kgpu's
		for _, l := range []inventory.PodSecurity{inventory.PodsBaseline, inventory.PodsRestricted} {
			if b.first.Facts.Files[admissionFile] == sha256Of([]byte(podSecurity(l))) {
				level = l
			}
		}
	}
	r.clusterDiffers("security.podSecurity", string(level), string(s.PodSecurity))
}

// node refuses what would make another node of one that the cluster has.
func (r *refusals) node(h *host) {
	b := r.b
	if h.Facts.Kubelet == nil {
		return
	}
	was := h.Facts.Kubelet.NodeName
	if b.hasNode(was) && was != h.node {
		r.differs(h, h.Path("name"), was, h.Name)
	}
	n := b.nodeOf(h)
	if n == nil {
		return
	}
	if runtime := runtimeOf(n); h == b.first || runtime != b.inv.Runtime { // all that are as the control plane is are told of once
		r.differs(h, "runtime", string(runtime), string(b.asked.Runtime))
	}
	runs, err := netip.ParseAddr(n.InternalIP)
	if err == nil && runs.Is4() == h.PrivateAddress.Is4() {
		r.differs(h, h.Path("privateAddress"), n.InternalIP, h.PrivateAddress.String())
	}
}

func (b *builder) hasNode(name string) bool {
	return slices.ContainsFunc(b.cluster.Nodes, func(n facts.Node) bool { return n.Name == name })
}

// hasControlPlaneOf reports whether one of the hosts is the control plane of the cluster with this CA.
func (b *builder) hasControlPlaneOf(ca string) bool {
	return slices.ContainsFunc(b.hosts, func(h *host) bool { return h.Facts.ControlPlane != nil && h.Facts.ControlPlane.CAHash == ca })
}

// placeOfRole is where the file says what the host is to be, or names the host.
func (b *builder) placeOfRole(h *host) string {
	key := h.Path("role")
	return cmp.Or(b.asked.At(key), b.asked.At(h.Path("address"))) + ": " + key
}
