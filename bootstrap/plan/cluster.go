package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// Outputs of steps that other steps take in: what lets hosts join, and become control planes.
const (
	OutputToken          = "token"
	OutputCAHash         = "ca_hash"
	OutputCertificateKey = "certificate_key"
	OutputEncryption     = "encryption"
)

// bringUp plans what happens between hosts: init, joins, network, labels, and the wait for all of it.
func (b *builder) bringUp() error {
	renewed, err := b.renewPlanes(false)
	if err != nil {
		return err
	}
	started, err := b.initCluster()
	if err != nil {
		return err
	}
	started = once(slices.Concat(started, renewed, b.planesUpgraded))
	returning := b.returning()
	planes, workers := b.joining(returning)
	if err := b.refuseGrowth(planes); err != nil {
		return err
	}
	var token []graph.Ref
	if len(planes)+len(workers)+len(returning) > 0 {
		if token, err = b.token(started, planes, workers, returning); err != nil {
			return err
		}
	}
	applied, err := b.addons(true, started)
	if err != nil {
		return err
	}
	network, plugin := applied["cluster/ready"], applied["gpu/ready"]
	joined := b.joinPlanes(planes, token)
	for _, h := range workers {
		joined = append(joined, b.join(h, token[0]))
	}
	for _, h := range returning {
		joined = append(joined, b.comeBack(h, token[0]))
	}
	b.untoken(started, token, joined)
	b.letIn(plugin)
	b.staysOpen(workers)
	labelled := b.nodes(slices.Concat(started, joined))
	if err := b.ready(slices.Concat(started, network, joined, labelled, b.upgraded()), len(network) > 0, slices.Concat(planes, workers), returning); err != nil {
		return err
	}
	if b.onlyComesUp() {
		return nil
	}
	b.cardsReady(slices.Concat(started, joined, labelled, b.accelerators(slices.Concat(started, joined))), plugin)
	_, err = b.addons(false, nil)
	return err
}

// initCluster plans kubeadm init and returns the step, or nothing when the control plane is up.
func (b *builder) initCluster() ([]graph.Ref, error) {
	s := b.Verdict(b.first.Machine)
	switch {
	case s.Membership == machine.Unmanaged && b.Adopt:
		b.skip(b.first, "cluster/init", "the control plane is taken over")
		return []graph.Ref{b.takeOver(b.first, s)}, nil
	case s.Why == "":
		b.skip(b.first, "cluster/init", "the API server answers")
		return b.first.last, nil
	case slices.Contains(b.first.last, graph.Ref{Host: b.first.id, ID: "certs/renew"}):
		b.skip(b.first, "cluster/init", "the API server answers when its certificates are renewed")
		return b.first.last, nil
	}
	if err := b.planesMissing(); err != nil {
		return nil, err
	}
	config, err := b.initConfig()
	if err != nil {
		return nil, err
	}
	return []graph.Ref{b.add(b.first, graph.Step{
		Ref: graph.Ref{ID: "cluster/init"}, Reason: s.Why,
		Input: b.planeInput(config),
	})}, nil
}

// joining lists the control planes and the workers that are not in this cluster, and takes over those that were put there by hand.
// Those that come back stay what they are.
func (b *builder) joining(returning []*host) (planes, workers []*host) {
	for _, h := range b.hosts {
		if h == b.first {
			continue
		}
		id, list := "cluster/join", &workers
		if h.IsControlPlane() {
			id, list = joinPlane, &planes
		}
		s := b.Verdict(h.Machine)
		switch {
		case slices.Contains(returning, h):
			b.skip(h, "cluster/join", "the node is in the cluster, and its kubelet comes back")
		case s.Membership == machine.Unmanaged && b.Adopt:
			b.skip(h, id, "the node is taken over")
			b.takeOver(h, s)
		case s.Membership == machine.Unmanaged, s.Why == "":
			b.skip(h, id, "the node is in the cluster")
		default:
			*list = append(*list, h)
		}
	}
	return b.maySeat(planes), workers
}

// TokenLife is how long a token lives that nobody deletes, as kubeadm has it. A worker may need hours before it joins: for
// its driver, its reboot, somebody's lock, and for its turn among a hundred.
const TokenLife = "24h"

func (b *builder) token(needs []graph.Ref, planes, workers, returning []*host) (ref []graph.Ref, err error) {
	values := map[string]string{"ttl": TokenLife}
	var why []string
	if joining := len(planes) + len(workers); joining > 0 {
		why, values = append(why, fmt.Sprintf("%d to join", joining)), b.owesNetworkProof(values)
	}
	if len(planes) > 0 {
		values, err = b.certified(planes, values)
	}
	if len(returning) > 0 {
		why = append(why, fmt.Sprintf("%d to come back", len(returning)))
	}
	return []graph.Ref{b.onCluster(graph.Step{
		Ref:    graph.Ref{ID: "cluster/token"},
		Reason: strings.Join(why, ", "), Needs: needs,
		Input: graph.Input{Values: values},
	})}, err
}

// untoken plans the end of kgpu's tokens: this run's, once the workers have joined, and those that former runs left. Which
// there are is known only where the API server answers.
func (b *builder) untoken(started, token, joined []graph.Ref) {
	reason := "all workers have joined"
	if len(b.Inventory.ControlPlanes()) > 1 {
		reason = "all hosts have joined"
	}
	if len(joined) == 0 {
		switch {
		case !b.ClusterExists():
			return
		case !b.APIAnswers():
			reason = "a run that was interrupted may have left it"
		case len(b.Cluster.Tokens) == 0:
			return
		default:
			reason = "a run that was interrupted left it"
		}
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "cluster/untoken"}, Reason: reason,
		Needs: slices.Concat(started, token, joined), Input: b.uncertified(),
	})
}

func (b *builder) join(h *host, token graph.Ref) graph.Ref {
	s := b.Verdict(h.Machine)
	needs := []graph.Ref{token}
	if s.Replaces {
		needs = append(needs, b.deleteNode(h, s))
	}
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: "cluster/join"}, Reason: joinReason(s),
		Needs: needs,
		LateInput: func(out graph.Outputs) (graph.Input, error) {
			config, err := b.joinConfig(h, said(out, token, OutputToken), said(out, token, OutputCAHash), "")
			return graph.Input{Values: b.withFlags(map[string]string{
				"kubeadm": config, "criSocket": b.criSocket(), "endpoint": b.Endpoint(), "node": h.node,
			})}, err
		},
	})
}

// said is a line that a step returned.
func said(out graph.Outputs, step graph.Ref, name string) string {
	return strings.TrimSpace(string(out[step][name]))
}

// takeOver plans that a host's membership, made by hand, is kgpu's from now on. Nothing of it is changed.
func (b *builder) takeOver(h *host, s machine.Verdict) graph.Ref {
	kind := "worker"
	if h.IsControlPlane() {
		kind = "control-plane"
	}
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: "cluster/adopt"}, Title: "take over the " + strings.ReplaceAll(kind, "-", " ") + " that was made by hand", Reason: s.Detail,
		Input: graph.Input{Values: map[string]string{"kind": kind, "node": h.node}},
	})
}

// joinReason says that a host which kgpu joined before leaves what it was in.
func joinReason(s machine.Verdict) string {
	if s.Membership == machine.Rejoin {
		return "join again: " + s.Why
	}
	return s.Why
}

// deleteNode plans that the node object of a host's former life goes: kubeadm joins no host whose node looks alive.
func (b *builder) deleteNode(h *host, s machine.Verdict) graph.Ref {
	before := slices.Clone(h.last)
	if s.Drain {
		before = append(before, b.evict(h, s.Why, drainBriefly))
	}
	return b.onCluster(deletion(h, s.Why, before))
}

// nodes plans labels and taints. What users put on nodes by hand stays.
func (b *builder) nodes(needs []graph.Ref) []graph.Ref {
	var want, reasons []string
	for _, h := range b.members() {
		labels := map[string]string{}
		maps.Copy(labels, h.Labels)
		if !h.IsControlPlane() {
			labels["node-role.kubernetes.io/worker"] = ""
		}
		if h.cards > 0 && !h.away {
			labels[gpuLabel] = "true"
		}
		node := b.NodeOf(h.Machine)
		before := len(want)
		for _, k := range sortedKeys(labels) {
			if have, ok := machine.LabelOf(node, k); !ok || have != labels[k] {
				want = append(want, fmt.Sprintf("%s\tlabel\t%s=%s", h.node, k, labels[k]))
			}
		}
		for _, t := range h.Taints {
			if node == nil || !slices.Contains(node.Taints, t.String()) {
				want = append(want, fmt.Sprintf("%s\ttaint\t%s", h.node, t))
			}
		}
		if len(want) > before {
			reasons = append(reasons, h.node)
		}
	}
	reason := "missing on " + strings.Join(reasons, ", ")
	if open := b.opened(); len(open) > 0 {
		want = append(want, open...)
		reason = "there are no workers: pods run on the control plane, and its taint goes; `taints` of the host in the inventory keeps it"
	}
	if len(want) == 0 {
		b.skip(b.admin, "cluster/nodes", "labels and taints are set")
		return nil
	}
	return []graph.Ref{b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "cluster/nodes"}, Reason: reason,
		Needs: needs, Input: graph.Input{Values: map[string]string{"nodes": lines(want...)}},
	})}
}

// ready plans the wait for nodes, pod network and DNS, and the proof that pods of all nodes have both.
func (b *builder) ready(needs []graph.Ref, applied bool, joining, returning []*host) error {
	var nodes []string
	for _, h := range b.members() {
		nodes = append(nodes, h.node)
	}
	reason := b.notReady()
	for _, due := range []struct {
		so  bool
		why string
	}{
		{b.upgrades(), "its Kubernetes changes"},
		{applied, "the pod network is applied anew"},
		{len(joining) > 0, "hosts join"}, // a node may be ready whose join was cut off at its end
		{len(returning) > 0, "kubelets come back"},
	} {
		if reason == "" && due.so {
			reason = due.why
		}
	}
	if reason == "" {
		b.skip(b.admin, "cluster/ready", "all nodes are ready")
		return nil
	}
	workloads := []string{"kube-system/daemonset/kube-proxy"}
	if w, ok := machine.NetworkWorkload[b.Inventory.Network]; ok {
		workloads = append(workloads, w, b.dnsWorkload())
	}
	values := map[string]string{"nodes": lines(nodes...), "workloads": lines(workloads...)}
	if b.Inventory.Network == inventory.None {
		values["network"] = "none" // nodes stay NotReady until somebody brings a network: only their registration is waited for
	} else if b.provesNetwork() {
		proof, err := b.networkProof()
		if err != nil {
			return err
		}
		values["proof"] = proof
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: "cluster/ready"}, Reason: reason,
		Needs: needs, Input: graph.Input{Values: values},
	})
	return nil
}

func (b *builder) dnsWorkload() string { return "kube-system/deployment/" + b.Minor.DNS() }

// away is how many nodes are not ready whose control planes cannot be asked.
func (b *builder) away() (count int) {
	for _, n := range b.Cluster.Nodes {
		if !n.Ready && slices.ContainsFunc(b.Inventory.ControlPlanes(), func(h inventory.Host) bool { return b.told(h) == 0 && isNodeOf(n, h) }) {
			count++
		}
	}
	return count
}

func (b *builder) notReady() string {
	if !b.ClusterExists() {
		return "the cluster is new"
	}
	var waiting []string
	for _, h := range b.members() {
		if n := b.NodeOf(h.Machine); n == nil || (!n.Ready && b.Inventory.Network != inventory.None) {
			waiting = append(waiting, "node "+h.node)
		}
	}
	if b.Inventory.Network != inventory.None {
		for _, w := range []string{b.dnsWorkload(), machine.NetworkWorkload[b.Inventory.Network]} {
			// Who is away is not waited for, nor are pods there: each node has one of the network's, and may have one of the DNS.
			if have := b.Cluster.Workloads[w]; have.Ready < max(have.Desired-b.away(), 1) {
				waiting = append(waiting, w)
			}
		}
	}
	if len(waiting) == 0 && slices.ContainsFunc(b.planes, func(h *host) bool { return h.Facts.NetworkUnproven }) && b.Inventory.Network != inventory.None {
		return "the pod network was not proven to its end"
	}
	if len(waiting) == 0 {
		return ""
	}
	return "not ready: " + strings.Join(waiting, ", ")
}
