package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// pods reports pods of the cluster itself that are stuck. Those of a host's network, and those on nodes that are not
// ready, are left out.
func (j *reporter) pods() {
	if j.api == nil {
		return
	}
	for _, p := range j.api.Waiting {
		host, node := j.hostOf(p.Node)
		why := p.Stuck(j.admin.Facts.Now)
		if why == "" || node != nil && state(node) != Ready || host != "" && makesNetwork(p.Name) {
			continue
		}
		text := fmt.Sprintf("pod %s/%s", p.Namespace, p.Name)
		if host == "" && p.Node != "" {
			text += " on node " + p.Node
		}
		j.problem(host, reason.PodStuck, text+": "+why, fmt.Sprintf("`kubectl -n %s describe pod %s`, and its logs", p.Namespace, p.Name))
	}
}

// waiting lists the pods that wait for a node with GPUs. This is no problem, because other pods may be using them.
func (j *reporter) waiting() {
	if j.api == nil {
		return
	}
	w := &j.report.Cluster.Waiting
	for _, p := range j.api.Pods {
		switch {
		case len(p.Requests) == 0:
		case p.Node == "" && p.Phase == "Pending":
			w.Pods = append(w.Pods, WaitingPod{oneLine(p.Namespace), oneLine(p.Name), printableRequests(p.Requests), oneLine(cmp.Or(p.Scheduler, "the scheduler has not said why"))})
		case p.Namespace == catalog.NotebookNamespace && p.Phase == "Running":
			w.Notebook = true
		}
	}
	w.Count = max(len(w.Pods), j.api.UnscheduledGPUPods)
}

// printableRequests copies a pod's requests, by resource.
func printableRequests(cards map[string]int) map[string]int {
	out := map[string]int{}
	for what, n := range cards {
		out[oneLine(what)] = n
	}
	return out
}

// hostOf returns a node and its host. host is empty if the inventory does not have it.
func (j *reporter) hostOf(name string) (host string, node *facts.Node) {
	for i := range j.api.Nodes {
		if j.api.Nodes[i].Name == name {
			node = &j.api.Nodes[i]
		}
	}
	for id, n := range j.nodes {
		if n == node && node != nil {
			host = id
		}
	}
	return host, node
}

func makesNetwork(pod string) bool {
	return slices.ContainsFunc(networkPods, func(begin string) bool { return strings.HasPrefix(pod, begin) })
}
