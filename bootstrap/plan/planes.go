package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// joinPlane is the step with which another control plane than the first joins.
const joinPlane = "cluster/join-control-plane"

// missingPlanes are the control planes of the inventory that could not be asked.
func (b *builder) missingPlanes() (ids []string) {
	for _, h := range b.Inventory.ControlPlanes() {
		if !slices.ContainsFunc(b.planes, func(p *host) bool { return p.id == h.ID() }) {
			ids = append(ids, h.ID())
		}
	}
	return ids
}

// planesMissing is the error of a cluster that would be made while a control plane cannot be asked whether it has one.
func (b *builder) planesMissing() error {
	missing := b.missingPlanes()
	if len(missing) == 0 {
		return nil
	}
	return refuse(reason.ClusterQuorumLost, missing[0], "this control plane cannot be reached, and may have the cluster: none is made beside it")
}

// refuseGrowth is the error of control planes that would join a cluster whose nodes know its API server by an address: kubeadm joins
// none there.
func (b *builder) refuseGrowth(joining []*host) error {
	if len(joining) == 0 || !b.ClusterExists() {
		return nil
	}
	if _, err := netip.ParseAddrPort(b.first.Facts.ControlPlane.Endpoint); err != nil {
		return nil // it is a name
	}
	return &reason.Error{ID: reason.ClusterSettingFixed, Host: joining[0].id, Doing: "planning",
		Detail: fmt.Sprintf("the cluster knows its API server by the address %s, and takes no other control plane before it has a name", b.first.Facts.ControlPlane.Endpoint),
		Advice: "docs/troubleshooting.md, \"A cluster that cannot grow\", gives it one"}
}

// maySeat returns the control planes that can join now. While one that etcd has may be down it takes no other: who joins then waits.
func (b *builder) maySeat(joining []*host) (may []*host) {
	missing := b.missingPlanes()
	if len(missing) == 0 {
		return joining
	}
	for _, h := range joining {
		if b.Verdict(h.Machine).Membership == machine.Member {
			may = append(may, h)
			continue
		}
		h.waits = true
		b.warn("%s: it joins as a control plane when %s answers again: etcd takes no new member while another is down", h.id, missing[0])
	}
	return may
}

// joinPlanes plans that control planes join, one after the other. It returns their last steps.
func (b *builder) joinPlanes(joining []*host, token []graph.Ref) (joined []graph.Ref) {
	for _, h := range joining {
		ref := b.joinPlane(h, token[0], joined)
		if b.Verdict(h.Machine).Membership != machine.Member {
			b.keepalived(h)
		}
		joined = append(joined, ref)
	}
	return joined
}

// certified adds to what makes the token what control planes need besides: the keys that they have in common, and an etcd that has
// forgotten what those were that come with nothing.
func (b *builder) certified(joining []*host, values map[string]string) (map[string]string, error) {
	config, err := b.initConfig()
	values["certificates"], values["names"] = config, lines(b.sharedNames()...)
	var fresh []string
	for _, h := range joining {
		if h.Facts.Etcd == nil && !h.InCluster() && b.ClusterExists() {
			fresh = append(fresh, h.node+" "+h.addr.String())
		}
	}
	if len(fresh) > 0 {
		values["fresh"] = lines(fresh...)
	}
	if b.encrypts() {
		values["encryption"] = encryption
	}
	return values, err
}

// uncertified is what deletes that with the tokens.
func (b *builder) uncertified() graph.Input {
	if len(b.Inventory.ControlPlanes()) == 1 {
		return graph.Input{}
	}
	return graph.Input{Values: map[string]string{"certificates": "yes"}}
}

func (b *builder) joinPlane(h *host, token graph.Ref, others []graph.Ref) graph.Ref {
	s := b.Verdict(h.Machine)
	needs := append([]graph.Ref{token}, others...)
	if s.Replaces {
		needs = append(needs, b.deleteNode(h, s))
	}
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: joinPlane}, Reason: joinReason(s), Needs: needs,
		LateInput: func(out graph.Outputs) (graph.Input, error) {
			config, err := b.joinConfig(h, said(out, token, OutputToken), said(out, token, OutputCAHash), said(out, token, OutputCertificateKey))
			input := b.planeInput(config)
			input.Values["endpoint"], input.Values["node"] = b.Endpoint(), h.node
			if b.TakenOut(h.Machine) {
				input.Values["leaves"] = "yes"
			}
			if b.encrypts() {
				input.Values["encryptionConfig"] = said(out, token, OutputEncryption)
			}
			return input, err
		},
	})
}

// mayHold reports whether a host may have the virtual address now. Control planes that join have it when they have.
func (b *builder) mayHold(h *host) bool {
	return h.IsControlPlane() && (h == b.first || b.Verdict(h.Machine).Membership == machine.Member)
}

// keepalived plans that the virtual address is on a control plane that works. Each watches its own API server; the one with the
// address gives it up when that fails, and keeps it where all fail alike.
func (b *builder) keepalived(h *host) {
	if step, reasons := b.keepalivedStep(h); step.ID != "" {
		b.unless(h, reasons, "keepalived runs", step)
	}
}

// keepalivedStep is the step that has keepalived run on a control plane as it is to, and why it is due. The step is empty where there is
// no virtual address.
func (b *builder) keepalivedStep(h *host) (step graph.Step, reasons []string) {
	v := b.Inventory.Kubernetes.VirtualIP
	at, ok := h.Beside(v)
	if !h.IsControlPlane() || !v.IsValid() || !ok {
		return graph.Step{}, nil
	}
	files := map[string]graph.File{
		machine.KeepalivedConf: {Mode: 0o600, Content: []byte(b.keepalivedConf(h, at))},
		keepalivedCheck:        {Mode: 0o755, Content: []byte(keepalivedProbe)},
	}
	if missing := h.Missing([]string{"keepalived"}); len(missing) > 0 {
		reasons = append(reasons, "missing: keepalived")
	} else {
		reasons = slices.Concat(changed(h.Facts, files), h.NotRunning("keepalived.service"))
	}
	values := map[string]string{"address": v.String(), "interface": at.Interface}
	if h == b.first && (!b.ClusterExists() || b.nameMoves(h)) {
		values["holds"] = "yes" // kubeadm init, or the nodes of the cluster, talk to the API server by its name then
	}
	return graph.Step{Ref: graph.Ref{ID: "os/keepalived"}, Input: graph.Input{Values: values, Files: files}}, reasons
}
