package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// RenewsSince is the minor of Kubernetes from which on kgpu renews certificates: older versions of kubeadm have other commands.
const RenewsSince = 30

// renewal is what is to be done about the certificates of a control plane.
type renewal struct {
	all     bool     // kubeadm renews all of its own
	lacking []string // names that the API server's certificate lacks: it is made anew
	restart []string // static pods that start anew in any case
	reasons []string
}

// RenewCertificates plans that all control planes get new certificates, one after the other, though the old ones may last.
func RenewCertificates(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	b.FixVerdicts()
	if b.Minor.Number < RenewsSince {
		return nil, reason.Usagef("kgpu renews the certificates of Kubernetes 1.%d and newer, and the cluster runs %s: on the control plane `kubeadm certs renew all` does, then restart its static pods", RenewsSince, b.Inventory.Kubernetes.Version)
	}
	for _, h := range b.planes {
		if v := b.Verdict(h.Machine); v.Refused != "" || h == b.first && v.Membership != machine.Member {
			return nil, &reason.Error{ID: cmp.Or(v.Refused, reason.ClusterMissing), Host: h.id, Doing: "planning", Detail: cmp.Or(v.Detail, v.Why), Advice: v.Advice}
		}
	}
	if err := b.refuseMoved(); err != nil {
		return nil, err
	}
	_, err = b.renewPlanes(true)
	return &b.graph, err
}

// renewPlanes plans new certificates on the control planes that need some, one control plane after the other; asked: on all. It returns
// the last step. Until a majority has certificates that others take, no API server gets ready, and none is waited for.
func (b *builder) renewPlanes(asked bool) (before []graph.Ref, err error) {
	working := b.workingEtcds()
	for _, h := range b.planes {
		if b.Verdict(h.Machine).Membership != machine.Member {
			continue
		}
		needs := before
		r := b.renewalOf(h)
		if asked {
			r.all, r.reasons = true, append([]string{"you asked for it"}, r.reasons...)
		}
		kubelet := b.kubeletDue(h)
		if b.Minor.Number < RenewsSince {
			b.warnOld(h, r, kubelet)
			continue
		}
		config, err := b.certificateConfig(h)
		if err != nil {
			return nil, err
		}
		if kubelet != "" {
			b.add(h, graph.Step{Ref: graph.Ref{ID: "certs/kubelet"}, Reason: kubelet, Needs: needs, Input: graph.Input{Values: map[string]string{"node": h.node, "kubeadm": config}}})
			before, needs = h.last, nil
		}
		values := map[string]string{"kubeadm": config, "renew": lines(r.kinds()...), "restart": lines(r.restart...)}
		if working[h.id] = true; 2*len(working) <= len(b.Inventory.ControlPlanes()) {
			values["alone"] = "yes"
		}
		if b.unless(h, r.reasons, "the certificates last, and have all names", graph.Step{
			Ref: graph.Ref{ID: "certs/renew"}, Needs: needs, Input: graph.Input{Values: values},
		}) {
			before = h.last
		}
	}
	return before, nil
}

// workingEtcds are the control planes whose etcd others take for one of theirs: none of its certificates has ended.
func (b *builder) workingEtcds() map[string]bool {
	working := map[string]bool{}
	for _, h := range b.planes {
		ended := func(c machine.Certificate) bool {
			return strings.HasPrefix(c.Path, "/etc/kubernetes/pki/etcd/") && c.Ended()
		}
		if !slices.ContainsFunc(machine.Certificates(h.Facts, h.Facts.Now), ended) {
			working[h.id] = true
		}
	}
	return working
}

// kinds are the kinds of renewal, as the step wants them. What kubeadm makes anew has the names of the configuration; what it
// renews has those that it had.
func (r renewal) kinds() (out []string) {
	if r.all {
		out = append(out, "all")
	}
	if len(r.lacking) > 0 {
		out = append(out, "apiserver")
	}
	return out
}

// renewalOf is what the certificates of a control plane need.
func (b *builder) renewalOf(h *host) renewal {
	var r renewal
	var due []machine.Certificate
	file := ""
	for _, c := range machine.Certificates(h.Facts, h.Facts.Now) {
		if c.Renewer == machine.ByKgpu && c.Due(machine.RenewBefore) {
			due = append(due, c)
		}
		if c.Path == machine.APIServerCertificate && !c.Ends.IsZero() {
			file = c.Sum
			r.lacking = b.lackingNames(h, c.Names)
		}
	}
	if len(due) > 0 {
		r.all, r.reasons = true, append(r.reasons, endsReason(due))
	}
	if len(r.lacking) > 0 {
		r.reasons = append(r.reasons, "the API server's certificate lacks "+strings.Join(r.lacking, ", "))
	}
	if h.Facts.RenewalBegun {
		r.all, r.reasons = true, append(r.reasons, "an earlier renewal was cut off")
	}
	if served := h.Facts.ControlPlane.Served; served != "" && file != "" && served != file {
		r.restart, r.reasons = []string{"kube-apiserver"}, append(r.reasons, "the API server still shows the certificate from before the last renewal")
	}
	if len(h.Facts.StalePods) > 0 {
		r.reasons = append(r.reasons, "certificates were renewed, and not restarted since: "+strings.Join(h.Facts.StalePods, ", "))
	}
	return r
}

// endsReason says which certificates end, the first of them first.
func endsReason(due []machine.Certificate) string {
	first, verb := due[0], "ends"
	if first.Ended() {
		verb = "has ended"
	}
	text := fmt.Sprintf("the certificate %q %s on %s", first.Name, verb, first.Ends.UTC().Format(time.DateOnly))
	if others := len(due) - 1; others > 0 {
		text += fmt.Sprintf(", and %d more then or soon after", others)
	}
	return text
}

// lackingNames are the names by which people and nodes reach the API server and which its certificate lacks. Those of a control plane
// that was made by hand are its owner's.
func (b *builder) lackingNames(h *host, has []string) []string {
	if h.Recorded().Adopted {
		return nil
	}
	have := map[string]bool{}
	for _, name := range has {
		have[plainName(name)] = true
	}
	var out []string
	for _, name := range b.wantedNames(h) {
		if !have[name] {
			out = append(out, name)
		}
	}
	return out
}

// wantedNames are the names that the certificate of a control plane's API server is to have, beside those that kubeadm gives it: those
// that all control planes have in common, and its own. One that joined has the address by which the others know it; kubeadm gives it no other.
func (b *builder) wantedNames(h *host) []string {
	list := append(b.sharedNames(), h.addr.String())
	if !h.Recorded().Plane {
		list = append(list, h.Address)
	}
	return names(list)
}

// sharedNames are the names that all control planes have in common: those that lead to whichever works, and what the inventory adds.
func (b *builder) sharedNames() []string {
	list := b.commonNames()
	server, _ := b.Inventory.Kubernetes.ClusterConfiguration["apiServer"].(map[string]any)
	more, _ := server["certSANs"].([]any)
	for _, name := range more {
		list = append(list, fmt.Sprint(name))
	}
	return names(list)
}

// plainName is a name as kubeadm takes it; an address in its shortest form.
func plainName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if at, err := netip.ParseAddr(name); err == nil {
		return at.Unmap().String()
	}
	return name
}

// certificateName matches what a certificate of an API server may be for: DNS names, with a star perhaps, and addresses.
var certificateName = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$`)

// certificateConfig is the file by which kubeadm makes certificates of a control plane. A name that the API server's certificate has
// is kept: somebody may use it.
func (b *builder) certificateConfig(h *host) (string, error) {
	list := b.wantedNames(h)
	for _, c := range h.Facts.Certificates {
		for _, name := range c.Names {
			if name = plainName(name); c.Path == machine.APIServerCertificate && certificateName.MatchString(name) {
				list = append(list, name)
			}
		}
	}
	address := h.addr.String()
	if at, err := netip.ParseAddr(h.Facts.ControlPlane.Advertised); err == nil {
		address = at.String()
	}
	cluster := merge(b.clusterConfiguration(), b.Inventory.Kubernetes.ClusterConfiguration)
	cluster = merge(cluster, object{"apiServer": object{"certSANs": names(list)}})
	return manifests.Encode(object{
		"apiVersion": b.kubeadmAPI(), "kind": "InitConfiguration",
		"localAPIEndpoint": object{"advertiseAddress": address, "bindPort": catalog.APIPort},
		"nodeRegistration": b.nodeRegistration(h),
	}, cluster)
}

// kubeletDue says why a host's kubelet needs a new certificate; empty: it does not. One that renews its own needs none before that
// has ended. On a worker, one that does not has to end first: only then the kubelet asks for another.
func (b *builder) kubeletDue(h *host) string {
	c := machine.KubeletCertificate(h.Facts, h.Facts.Now)
	switch {
	case c == nil || b.Verdict(h.Machine).Membership != machine.Member:
	case c.Ended():
		return "the kubelet's certificate has ended on " + c.Ends.UTC().Format(time.DateOnly)
	case h.IsControlPlane() && c.Renewer == machine.ByNobody && c.Due(machine.RenewBefore):
		return "the kubelet's certificate ends on " + c.Ends.UTC().Format(time.DateOnly) + ", and it does not renew it"
	case !h.IsControlPlane() && h.Recorded().Done && slices.Contains(h.Facts.KubeadmFiles, bootstrapConfig):
		return "a run that was interrupted left the token by which the kubelet gets a new certificate"
	}
	return ""
}

// bootstrapConfig is the kubeconfig with which a kubelet asks for its certificate.
const bootstrapConfig = "/etc/kubernetes/bootstrap-kubelet.conf"

// returning lists the workers that are in the cluster, and whose kubelets need a new certificate to come back.
func (b *builder) returning() (out []*host) {
	for _, h := range b.hosts {
		if h.IsControlPlane() || b.kubeletDue(h) == "" {
			continue
		}
		if b.Minor.Number < RenewsSince {
			b.warnOld(h, renewal{}, b.kubeletDue(h))
			continue
		}
		out = append(out, h)
	}
	return out
}

// comeBack plans a new certificate for the kubelet of a worker, whose node stays what it is.
func (b *builder) comeBack(h *host, token graph.Ref) graph.Ref {
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: "certs/kubelet"}, Reason: b.kubeletDue(h), Needs: []graph.Ref{token},
		LateInput: func(out graph.Outputs) (graph.Input, error) {
			return graph.Input{Values: map[string]string{"node": h.node, "token": said(out, token, OutputToken)}}, nil
		},
	})
}

// warnOld tells of certificates that kgpu does not renew.
func (b *builder) warnOld(h *host, r renewal, kubelet string) {
	if kubelet != "" {
		r.reasons = append(r.reasons, kubelet)
	}
	if len(r.reasons) > 0 {
		b.warn("%s: %s; kgpu renews the certificates of Kubernetes 1.%d and newer: docs/operations.md, \"Certificates\"", h.id, strings.Join(r.reasons, "; "), RenewsSince)
	}
}
