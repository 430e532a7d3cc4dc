package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// staysAsMade reports whether there is a cluster that goes on as it was made.
func (b *builder) staysAsMade() bool {
	m := b.Verdict(b.first.Machine).Membership
	return b.ClusterExists() && (m == machine.Member || m == machine.Unmanaged)
}

// refuseFixed is the error of an inventory that wants something else than the cluster was made with.
func (b *builder) refuseFixed() error {
	if !b.staysAsMade() {
		return nil
	}
	r := refusals{b: b}
	r.cluster()
	r.security()
	for _, h := range b.hosts {
		if b.Verdict(h.Machine).Refused == "" || b.Verdict(h.Machine).Membership == machine.Unmanaged {
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
	at := r.b.Asked.At(key)
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
	b, c, k := r.b, r.b.first.Facts.ControlPlane, r.b.Asked.Kubernetes
	if b.Verdict(b.first.Machine).Membership == machine.Member && !b.first.Recorded().Adopted {
		r.clusterDiffers("cluster", c.Name, b.Asked.Cluster)
	}
	if network, sign := b.RunningNetwork(); network != "" && network != b.Asked.Network {
		r.clusterDiffers("network", fmt.Sprintf("%s (%s)", network, sign), string(b.Asked.Network))
	}
	r.clusterDiffers("kubernetes.podCIDR", c.PodCIDR, k.PodCIDR.String())
	r.clusterDiffers("kubernetes.serviceCIDR", c.ServiceCIDR, k.ServiceCIDR.String())
	r.endpoint()
	made := b.madeWith()
	whole := sha256Of(madeWithText(k.ClusterConfiguration)) // as clusters remember it that an older kgpu made
	for _, key := range sortedKeys(madeWithKeys(k)) {
		file := madeWithFile(key)
		older := key == "kubernetes.clusterConfiguration" && b.first.Facts.Files[file] == whole
		if sum := b.first.Facts.Files[file]; sum != "" && sum != sha256Of(made[file].Content) && !older {
			r.clusterDiffers(key, "what "+file+" on it says", "something else")
		}
	}
}

// security holds the API server's flags, and the file with the level of pods, against the inventory.
func (r *refusals) security() {
	b, d, s := r.b, r.b.first.Facts.ControlPlane.Defences, r.b.Asked.Security
	if !b.Minor.Secured() {
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
	n := b.NodeOf(h.Machine)
	if n == nil {
		return
	}
	if runtime := machine.RuntimeOf(n); h == b.first || runtime != b.Inventory.Runtime { // all that are as the control plane is are told of once
		r.differs(h, "runtime", string(runtime), string(b.Asked.Runtime))
	}
	runs, err := netip.ParseAddr(n.InternalIP)
	if err == nil && runs.Is4() == h.PrivateAddress.Is4() {
		r.differs(h, h.Path("privateAddress"), n.InternalIP, h.PrivateAddress.String())
	}
}

func (b *builder) hasNode(name string) bool {
	return slices.ContainsFunc(b.Cluster.Nodes, func(n facts.Node) bool { return n.Name == name })
}
