package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// Observed is a host with what it answered.
type Observed struct {
	machine.Machine
	Status *facts.Status // nil if it did not answer
	Err    error         // why it did not answer; nil if it did
}

// NewReport makes the report from the hosts, which are in the inventory's order, and what `kgpu up` would do.
func NewReport(inv *inventory.Inventory, hosts []Observed, todo *PendingSteps, now time.Time) *Report {
	seen, _ := factsOf(hosts)
	set := machine.SetOf(inv, seen)
	j := &reporter{
		set: set, inv: set.Inventory, seen: machine.ClusterOf(inv, seen), kubernetes: set.Versions, skewed: set.Skewed(), hosts: hosts, todo: todo, now: now,
		report: &Report{Schema: Schema, Time: now.UTC().Truncate(time.Second), Hosts: []Host{}, OtherNodes: []OtherNode{}, Problems: []Problem{}},
	}
	j.findNodes()
	j.cluster()
	for i := range j.hosts {
		j.host(&j.hosts[i])
	}
	j.otherNodes()
	j.pods()
	j.waiting()
	busy := j.busy()
	j.report.Well = len(j.report.Problems) == 0 && !busy
	return j.report
}

// busy reports whether kgpu is at work on the cluster. If so, only unreachable hosts remain problems, as the others may
// be about to be solved.
func (j *reporter) busy() bool {
	busy := j.report.Cluster.AtWork != ""
	for _, h := range j.report.Hosts {
		busy = busy || h.AtWork != ""
	}
	if busy {
		j.report.Problems = slices.DeleteFunc(j.report.Problems, func(p Problem) bool { return reason.Lookup(p.Reason).Class() != reason.Connection })
	}
	return busy
}

// reporter builds a report.
type reporter struct {
	set        *machine.Set
	inv        *inventory.Inventory // with the running version
	kubernetes machine.Versions
	skewed     map[string]string
	hosts      []Observed
	todo       *PendingSteps
	now        time.Time
	report     *Report

	planes []*Observed            // the control planes
	admin  *Observed              // the control plane that tells of the cluster, if possible one that answers; nil if there is none
	seen   *facts.Cluster         // nil if no API server answered
	api    *facts.API             // the admin's answer; nil if its API server did not answer
	nodes  map[string]*facts.Node // by host ID
}

// findNodes finds the control planes, and each host's node.
func (j *reporter) findNodes() {
	for i := range j.hosts {
		if j.hosts[i].Host.IsControlPlane() {
			j.planes = append(j.planes, &j.hosts[i])
		}
	}
	j.nodes = map[string]*facts.Node{}
	if len(j.planes) == 0 {
		return
	}
	at := slices.IndexFunc(j.planes, func(p *Observed) bool { return p.Status != nil && p.Status.API != nil && p.Status.API.Answers })
	if j.admin = j.planes[max(at, 0)]; at < 0 {
		return
	}
	j.api = j.admin.Status.API
	for i := range j.hosts {
		for k := range j.api.Nodes {
			if n := &j.api.Nodes[k]; isNodeOf(&j.hosts[i], n) {
				j.nodes[j.hosts[i].Host.ID()] = n
			}
		}
	}
}

// isNodeOf reports whether the node is the host's: by its name, or by its address if the host has no facts and no name in
// the inventory.
func isNodeOf(s *Observed, n *facts.Node) bool {
	switch {
	case s.Facts != nil:
		return n.Name == s.NodeName()
	case s.Host.Name != "":
		return n.Name == s.Host.Name
	case s.Host.PrivateAddress.IsValid():
		return n.InternalIP == s.Host.PrivateAddress.String()
	}
	return n.InternalIP == s.Host.Address || n.Name == s.Host.Address
}

// problem adds a problem. An empty advice stands for that of the reason.
func (j *reporter) problem(host string, id reason.ID, text, advice string) {
	j.report.Problems = append(j.report.Problems, Problem{host, id, oneLine(text), cmp.Or(oneLine(advice), reason.Lookup(id).Advice)})
}

// failed adds a problem for each reason in an error.
func (j *reporter) failed(host string, err error) {
	all := reason.All(err)
	for _, e := range all {
		text := strings.TrimPrefix(e.Error(), e.Host+": ")
		j.problem(cmp.Or(e.Host, host), e.ID, strings.TrimSuffix(text, fmt.Sprintf(" [%s]", e.ID)), e.AdviceLine())
	}
	if len(all) == 0 {
		j.problem(host, "", err.Error(), "`kgpu support` gathers what helps to find out why")
	}
}

// cluster reports what concerns all hosts.
func (j *reporter) cluster() {
	c := &j.report.Cluster
	*c = Cluster{
		Name: j.inv.Cluster, Inventory: j.inv.Path, Kubernetes: "v" + j.kubernetes.Wanted.String(),
		Network: Network{Name: string(j.inv.Network)}, Cards: []Resource{}, Waiting: Waiting{Pods: []WaitingPod{}},
	}
	j.apiServer(c)
	if j.todo.Err != nil {
		j.failed("", fmt.Errorf("what is to do cannot be told: %w", j.todo.Err))
	}
	if at := slices.IndexFunc(j.planes, func(p *Observed) bool { return p.Facts != nil && p.Facts.LockHolder != nil }); at >= 0 {
		f := j.planes[at].Facts
		c.AtWork = oneLine(f.LockHolder.Describe(f.Now))
	}
	if j.seen != nil {
		c.Network.Pods = workload(j.seen, machine.NetworkWorkload[j.inv.Network])
		if c.DNS = workload(j.seen, "kube-system/deployment/coredns"); c.DNS == nil {
			c.DNS = workload(j.seen, "kube-system/deployment/kube-dns")
		}
	}
	if slices.ContainsFunc(j.planes, func(p *Observed) bool { return p.Facts != nil && p.Facts.NetworkUnproven }) {
		j.problem("", reason.NetPodsUnreachable, "the last run did not come to the end of its proof that pods of all nodes reach each other and the DNS", "`kgpu up "+j.inv.Path+"` tries again, and says what does not")
	}
	if w := c.DNS; w != nil && w.Ready < max(w.Desired, 1) {
		text := fmt.Sprintf("%s: %d of %d pods are ready", w.Name, w.Ready, w.Desired)
		if w.Ready == 0 {
			text += ": names of services do not resolve"
		}
		j.problem("", "", text, "`kubectl -n kube-system describe deployment "+w.Name+"`")
	}
}

// workload returns the state of a workload that has this name in facts; nil if there is none.
func workload(c *facts.Cluster, name string) *Workload {
	w, ok := c.Workloads[name]
	if !ok {
		return nil
	}
	return &Workload{Name: oneLine(name[strings.LastIndexByte(name, '/')+1:]), Desired: w.Desired, Ready: w.Ready}
}

// apiServer reports whether an API server answers. A host that could not be asked is a problem of its own.
func (j *reporter) apiServer(c *Cluster) {
	switch {
	case j.admin == nil:
		c.API.Error = "the inventory has no control plane"
	case j.admin.Facts == nil:
		c.API.Error = "the control plane " + j.admin.Host.ID() + " cannot be asked: nodes, pods and drift are unknown until it can"
	case j.admin.Status == nil:
		c.API.Error = "the control plane " + j.admin.Host.ID() + " did not tell"
	case j.admin.Status.API == nil:
		c.API.Error = "there is no control plane on " + j.admin.Host.ID() + " yet"
	default:
		api := j.admin.Status.API
		c.API = API{Answers: api.Answers, Version: oneLine(api.Version)}
		if !api.Answers {
			c.API.Error = apiError(api)
		}
	}
	for _, p := range j.planes {
		if p.Status != nil && p.Status.API != nil && !p.Status.API.Answers {
			j.problem(p.Host.ID(), reason.APIUnreachable, "the API server does not answer: "+apiError(p.Status.API),
				"`journalctl -u kubelet` and `crictl ps -a` on the control plane say why it does not run")
		}
	}
}

// apiError is kubectl's error if the API server did not answer.
func apiError(api *facts.API) string { return cmp.Or(oneLine(api.Error), "it does not answer") }

// noCluster reports whether all control planes answered that they have no cluster.
func (j *reporter) noCluster() bool {
	return len(j.planes) > 0 && !slices.ContainsFunc(j.planes, func(p *Observed) bool { return p.Status == nil || p.Status.API != nil })
}

// host reports one host.
func (j *reporter) host(s *Observed) {
	id := s.Host.ID()
	h := Host{
		Host: id, Address: s.Host.Address, Role: string(s.Host.Role), Reached: s.Facts != nil,
		Certificates: []Certificate{}, Network: []NetworkPod{}, Drift: Drift{Pending: []Step{}},
		GPU: GPU{Cards: []Card{}, Resources: []Resource{}, Pods: []Pod{}},
	}
	if s.Err != nil {
		j.failed(id, s.Err)
	}
	node := j.nodes[id]
	j.node(&h, node)
	j.versions(&h, s, node)
	j.gpu(&h, s, node)
	j.network(&h, node)
	j.reach(&h, s)
	j.certificates(&h, s)
	j.backups(&h, s)
	if s.Facts != nil {
		j.skew(&h)
		j.drift(&h)
		if r := s.Facts.Run; r != nil {
			h.AtWork = oneLine(r.Step)
		}
	}
	if h.State == NoNode && len(h.Drift.Pending) == 0 {
		j.problem(id, reason.NodeNotReady, "the cluster has no node for it", "`kgpu up "+j.inv.Path+"` joins it")
	}
	j.report.Hosts = append(j.report.Hosts, h)
}

// node reports the state of the host's node.
func (j *reporter) node(h *Host, n *facts.Node) {
	switch {
	case n != nil:
	case j.api != nil, j.noCluster():
		h.State = NoNode
		return
	default:
		h.State = Unknown
		return
	}
	h.State = state(n)
	h.Node = &Node{Name: oneLine(n.Name), Reason: oneLine(n.Reason), Message: oneLine(n.Message), Schedulable: !n.Unschedulable}
	since := ""
	if !n.Since.IsZero() {
		at := n.Since.UTC()
		h.Node.Since = &at
		since = " since " + at.Format("2006-01-02 15:04:05 UTC")
	}
	if h.State == NotReady {
		text := "node " + n.Name + " is not ready" + since
		if why := n.Reason + ": " + n.Message; why != ": " {
			text += ": " + why
		}
		j.problem(h.Host, reason.NodeNotReady, text, "")
	}
	if n.NetworkUnavailable {
		j.problem(h.Host, reason.NodeNotReady, "node "+n.Name+" has no pod network", "look at the pods of the network: `kubectl get pods -A -o wide`")
	}
	if short := n.Pressure(); len(short) > 0 {
		j.problem(h.Host, reason.NodePressure, "node "+n.Name+" takes no new pods, and evicts some: "+strings.Join(short, ", "), "")
	}
	if n.Unschedulable {
		j.problem(h.Host, "", "node "+n.Name+" takes no new pods (SchedulingDisabled)", "when the work on it is done: `kubectl uncordon "+n.Name+"`")
	}
}

func state(n *facts.Node) State {
	if n.Ready {
		return Ready
	}
	return NotReady
}

// versions reports the versions of the node, or of the packages of a host without one.
func (j *reporter) versions(h *Host, s *Observed, n *facts.Node) {
	v := &h.Versions
	if n != nil {
		*v = Versions{oneLine(n.Version), oneLine(n.Runtime), oneLine(n.Kernel), oneLine(n.OS)}
	}
	f := s.Facts
	if f == nil {
		return
	}
	if kubelet := f.Packages["kubelet"].Version; v.Kubelet == "" && kubelet != "" {
		version, _, _ := strings.Cut(kubelet, "-")
		v.Kubelet = oneLine("v" + version)
	}
	if docker := f.DockerInfo["version"]; v.Runtime == "" && docker != "" {
		v.Runtime = oneLine("docker://" + docker)
	}
	if containerd := cmp.Or(f.Packages["containerd.io"].Version, f.Packages["containerd"].Version); v.Runtime == "" && containerd != "" {
		version, _, _ := strings.Cut(containerd, "-")
		v.Runtime = oneLine("containerd://" + version)
	}
	v.Kernel, v.OS = cmp.Or(oneLine(f.Kernel), v.Kernel), cmp.Or(oneLine(f.OS.PrettyName), v.OS)
}

// otherNodes reports nodes that are not in the inventory.
func (j *reporter) otherNodes() {
	if j.api == nil {
		return
	}
	mine := slices.Collect(maps.Values(j.nodes))
	var unsure []string // hosts without facts, which may be one of them
	for i := range j.hosts {
		if id := j.hosts[i].Host.ID(); j.hosts[i].Facts == nil && j.nodes[id] == nil {
			unsure = append(unsure, id)
		}
	}
	for i := range j.api.Nodes {
		n := &j.api.Nodes[i]
		if slices.Contains(mine, n) {
			continue
		}
		j.report.OtherNodes = append(j.report.OtherNodes, OtherNode{oneLine(n.Name), oneLine(n.InternalIP), state(n)})
		text := fmt.Sprintf("node %s (%s) is no host of the inventory", n.Name, cmp.Or(n.InternalIP, "no address"))
		if len(unsure) > 0 {
			text += ", unless it is one that cannot be asked: " + strings.Join(unsure, ", ")
		}
		j.problem("", reason.HostNotInInventory, text, "")
	}
}

// oneLine makes foreign text fit for one line of a table, and cuts it.
func oneLine(s string) string {
	const most = 600
	return printable.Short(strings.NewReplacer("\t", " ", "\n", " ").Replace(s), most)
}
