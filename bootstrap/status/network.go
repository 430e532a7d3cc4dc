package status

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// networkPods are prefixes of the names of pods that make a node's network, as scripts/status.sh prints them.
var networkPods = []string{"weave-net-", "kube-flannel-ds-", "calico-node-", "kube-proxy-"}

// network reports the pods of a host's network. Their state is unknown if the node is not ready.
func (j *reporter) network(h *Host, node *facts.Node) {
	if node == nil {
		return
	}
	_, daemon, _ := strings.Cut(machine.NetworkWorkload[j.inv.Network], "/daemonset/")
	here := false
	for _, p := range j.api.Pods {
		if p.Node != node.Name || !makesNetwork(p.Name) {
			continue
		}
		here = here || daemon != "" && strings.HasPrefix(p.Name, daemon+"-")
		pod := NetworkPod{oneLine(p.Namespace), oneLine(p.Name), p.Ready, oneLine(p.Waiting)}
		h.Network = append(h.Network, pod)
		if p.Ready || h.State != Ready {
			continue
		}
		text := "pod " + p.Name + " of the network is not ready"
		if p.Waiting != "" {
			text += ": " + p.Waiting
		}
		j.problem(h.Host, "", text, fmt.Sprintf("`kubectl -n %s describe pod %s`, and its logs", p.Namespace, p.Name))
	}
	if daemon != "" && !here && h.State == Ready {
		j.problem(h.Host, "", "no pod of "+daemon+" runs on node "+node.Name, "`kubectl get daemonsets -A`: is the node tainted, or its network deleted?")
	}
}

// reach reports what the host did not reach over the pod network. A peer that did not answer SSH either, or whose node
// is not ready, is reported as such.
func (j *reporter) reach(h *Host, s *Observed) {
	silent := slices.ContainsFunc(j.hosts, func(s Observed) bool { return s.Status == nil })
	if silent || h.State != Ready || slices.ContainsFunc(j.api.Nodes, func(n facts.Node) bool { return state(&n) != Ready }) {
		return
	}
	if t := s.Status.Peer; t.Silent {
		name := "another node"
		for _, other := range j.hosts {
			if other.Status.PodSubnet.Masked().Contains(t.Address) {
				name = other.Host.ID()
			}
		}
		j.problem(h.Host, reason.NetPodsUnreachable, fmt.Sprintf("its pods do not reach those of %s: no answer from %s", name, t.Address), "")
	} else if t := s.Status.DNS; t.Silent {
		j.problem(h.Host, reason.NetDNSBroken, fmt.Sprintf("the cluster's DNS does not answer there: no answer from %s", t.Address), "")
	}
}
