package doctor

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// maxEvidence is how many lines of evidence a finding shows.
const maxEvidence = 4

// examinee is a machine under examination. f and e are never nil.
type examinee struct {
	Machine
	inv        *inventory.Inventory
	f          *facts.Host
	e          *Evidence
	answered   bool // both scripts answered
	node       *facts.Node
	plugin     []Pod              // the node's pods of the device plugin
	waiting    []facts.WaitingPod // pods that wait on the node, or, on the host that reported them, for any node
	events     []Event
	pluginLog  []string // log of the node's device plugin
	weaveLog   []string // log of the node's weave pod
	member     bool
	cards      int  // number of cards that the driver should run
	cluster    bool // an API server of the cluster answered
	slow       bool // nvidia-smi answers, but slower than doctor.sh allows
	api        apiName
	set        *machine.Set
	incomplete bool // a host did not answer or a node is not ready, so unreachable peers prove nothing
}

// apiName is the API server's name in /etc/hosts and its address; zero if there is none.
type apiName struct {
	name string
	at   netip.Addr
}

// Check returns the findings of all machines, in their order, the worst first, without the IDs in ignore.
func Check(inv *inventory.Inventory, machines []Machine, ignore []string) []Finding {
	var all *Cluster
	seen := map[string]*facts.Host{}
	for _, m := range machines {
		seen[m.ID()] = m.Facts
		if m.Evidence != nil && m.Evidence.Cluster != nil && all == nil {
			all = m.Evidence.Cluster
		}
	}
	var api apiName
	set := machine.SetOf(inv, seen)
	if set.First != nil {
		api = apiName{set.APIName(), set.APIAddress()}
	}
	quiet := all == nil || slices.ContainsFunc(machines, func(m Machine) bool { return m.Evidence == nil }) ||
		slices.ContainsFunc(all.Nodes, func(n facts.Node) bool { return !n.Ready })
	before := checkBefore(inv, machines)
	var out []Finding
	for _, m := range machines {
		var found []Finding
		s := newExaminee(inv, m, all)
		s.api, s.incomplete, s.set = api, quiet, set
		found = append(found, unreached(m)...)
		for _, row := range catalogue {
			if (m.Facts == nil && m.Evidence == nil) || row.find == nil {
				continue
			}
			if evidence := row.find(s); len(evidence) > 0 {
				found = append(found, s.finding(row, evidence))
			}
		}
		for _, f := range before[m.ID()] {
			if !slices.ContainsFunc(found, func(other Finding) bool { return other.ID == f.ID || slices.Contains(explainedBy(other.ID), f.ID) }) {
				found = append(found, f)
			}
		}
		found = slices.DeleteFunc(withoutConsequences(found), func(f Finding) bool { return slices.Contains(ignore, f.ID) })
		SortWorst(found)
		out = append(out, found...)
	}
	return out
}

func newExaminee(inv *inventory.Inventory, m Machine, all *Cluster) *examinee {
	s := &examinee{Machine: m, inv: inv, f: m.Facts, e: m.Evidence, answered: m.Facts != nil && m.Evidence != nil}
	if s.f == nil {
		s.f = &facts.Host{}
		s.Facts = s.f
	}
	if s.e == nil {
		s.e = &Evidence{}
	}
	if s.slow = s.e.Asked && s.f.NVIDIA.Loaded != "" && facts.TimedOut(s.e.SMI) && !facts.TimedOut(s.f.NVIDIA.SMI); s.slow {
		answered := *s.e
		answered.SMI = s.f.NVIDIA.SMI // facts.sh has a longer timeout
		s.e = &answered
	}
	s.member = s.f.Kubelet != nil || s.f.ControlPlane != nil
	s.cards = len(machine.Cards(inv, s.f))
	if all == nil {
		return s
	}
	s.cluster = true
	name := s.NodeName()
	for i, n := range all.Nodes {
		if n.Name == name {
			s.node = &all.Nodes[i]
		}
	}
	for _, p := range all.Pods {
		if p.Node != name {
			continue
		}
		s.plugin = append(s.plugin, p)
		s.pluginLog = append(s.pluginLog, podLines(p.Name, all.PluginLog)...)
	}
	for _, p := range all.Waiting {
		if p.Node != "" && p.Node == name || p.Node == "" && m.Evidence != nil && m.Evidence.Cluster == all {
			s.waiting = append(s.waiting, p)
		}
	}
	for pod, node := range all.WeavePods {
		if node == name {
			s.weaveLog = append(s.weaveLog, podLines(pod, all.WeaveLog)...)
		}
	}
	for _, e := range all.Events {
		if e.Node == name && !s.f.Now.IsZero() && s.f.Now.Sub(e.Time) < recent {
			s.events = append(s.events, e)
		}
	}
	return s
}

// podLines returns the lines of a pod.
func podLines(pod string, lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "[pod/"+pod+"/") })
}

// recent is how old an event of the cluster may be. Events are kept for an hour, and the failure may be over by then.
const recent = 10 * time.Minute

// finding makes the finding of a row from its evidence.
func (s *examinee) finding(r Row, evidence []string) Finding {
	f := Finding{ID: r.ID, Severity: r.Severity, Host: s.ID(), Cause: r.Cause, Repair: r.Repair, Force: r.force}
	if s.f.Hostname != "" || s.Name != "" {
		f.Node = s.NodeName()
	}
	for _, line := range evidence[:min(len(evidence), maxEvidence)] {
		f.Evidence = append(f.Evidence, printable.Short(line, 300))
	}
	fix := r.Fix
	if r.repairable != nil && !r.repairable(s) {
		f.Repair, f.Force = ByHand, false
		if r.unrepairable != nil {
			f.Cause, fix = r.unrepairable.cause, r.unrepairable.fix
		}
	}
	f.Fix = strings.NewReplacer("HOST", s.ID(), "NODE", cmp.Or(f.Node, s.ID())).Replace(fix)
	if r.units != nil {
		if f.Units = r.units(s); len(f.Units) == 0 && r.Repair == RestartUnit {
			f.Repair = ByHand
		}
	}
	if r.Repair == Hold {
		f.Packages = s.e.HoldsLost
	}
	return f
}

// unreached returns the findings of a host that did not answer, or only in part.
func unreached(m Machine) []Finding {
	if m.Err == nil {
		return nil
	}
	var out []Finding
	for _, e := range reason.All(m.Err) {
		// Both scripts report the same failed connection. Only failures of the answers themselves are kept apart.
		if e.ID == reason.FactsFailed || !slices.ContainsFunc(out, func(f Finding) bool { return f.ID == string(e.ID) }) {
			out = append(out, fromReason(m.ID(), e))
		}
	}
	if len(out) == 0 {
		out = append(out, fromReason(m.ID(), &reason.Error{ID: reason.FactsFailed, Host: m.ID(), Err: m.Err}))
	}
	return out
}

// refusals are the reasons of a plan that refuses to change a working cluster.
var refusals = []reason.ID{reason.KubernetesVersionChange, reason.KubernetesSkew, reason.EtcdTooOld, reason.ClusterSettingFixed}

// Refused returns the findings of a plan that refuses to change the version or the fixed settings of a working cluster.
func Refused(err error) []Finding {
	var out []Finding
	for _, e := range reason.All(err) {
		if slices.Contains(refusals, e.ID) {
			out = append(out, fromReason(e.Host, e))
		}
	}
	return out
}

// fromReason makes a finding of an error with a reason.
func fromReason(host string, e *reason.Error) Finding {
	evidence := e.Detail
	if evidence == "" && e.Err != nil {
		evidence = e.Err.Error()
	}
	f := Finding{ID: string(e.ID), Severity: Error, Host: host, Cause: reason.Lookup(e.ID).Meaning, Fix: e.AdviceLine()}
	if slices.Contains(harmlessOnNodes, e.ID) {
		f.Severity = Warning
	}
	if evidence != "" {
		f.Evidence = []string{printable.Short(evidence, 300)}
	}
	return f
}

// harmlessOnNodes are refused by preflight or the plan before an installation, but harmless on a node.
var harmlessOnNodes = slices.Concat(refusals, []reason.ID{reason.HostRebootPending, reason.HostClockSkew, reason.HostTooSmall, reason.NetMTUDiffers, reason.HostKernelTooOld})

// installChecks are checks of preflight that concern only the choice of what to install, not an existing node.
var installChecks = []reason.ID{reason.GPUDriverImpossible, reason.GPUDriverMissing, reason.GPUDriverForeign, reason.GPUCUDAImpossible, reason.GPUSecureBootUnsigned, reason.HostPackageHeld}

// checkBefore returns preflight's findings on the hosts with facts.
func checkBefore(inv *inventory.Inventory, machines []Machine) map[string][]Finding {
	var list []preflight.Machine
	works := map[string]bool{}
	control := false
	for _, m := range machines {
		if m.Facts != nil {
			list = append(list, preflight.Machine{Machine: m.Machine})
			works[m.ID()] = m.Facts.NVIDIA.Loaded != ""
			control = control || m.IsControlPlane()
		}
	}
	out := map[string][]Finding{}
	if !control {
		return out // memberships are unknown without a control plane's facts
	}
	for _, e := range preflight.Check(inv, list, inv.Ignore) {
		if slices.Contains(installChecks, e.ID) && works[e.Host] {
			continue
		}
		out[e.Host] = append(out[e.Host], fromReason(e.Host, e))
	}
	return out
}

// explainedBy are the IDs of the findings that follow from one with this ID.
func explainedBy(id string) []string {
	i := slices.IndexFunc(catalogue, func(r Row) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return catalogue[i].explains
}

// withoutConsequences leaves out findings that another finding of the same host explains.
func withoutConsequences(found []Finding) []Finding {
	gone := map[string]bool{}
	for _, f := range found {
		for _, id := range explainedBy(f.ID) {
			gone[id] = gone[id] || id != f.ID
		}
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return gone[f.ID] })
}
