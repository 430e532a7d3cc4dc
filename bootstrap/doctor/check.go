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
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// most is how many lines of evidence a finding has.
const most = 4

// subject is a machine while it is examined. Nothing of it is nil.
type subject struct {
	Machine
	inv     *inventory.Inventory
	f       *facts.Host
	e       *Evidence
	told    bool // both scripts have told
	node    *facts.Node
	plugin  []Pod              // the device plugin on it
	waiting []facts.WaitingPod // on it, or for no node yet where it told of them
	events  []Event
	said    []string // what its device plugin said
	weave   []string // what weave said on it
	member  bool
	cards   int  // that the driver should have
	cluster bool // the API server answered somewhere
	slow    bool // nvidia-smi answers, and not within the time that doctor.sh has for it
	api     apiName
	quiet   bool // some host did not tell, or some node is not ready: what others do not reach may be there
}

// apiName is the name by which the hosts are to know the API server, and where it is to lead; zero: there is none.
type apiName struct {
	name string
	at   netip.Addr
}

// Check returns what is wrong with the machines, in their order, the worst first. Reasons in ignore are left out.
func Check(inv *inventory.Inventory, machines []Machine, ignore []string) []Finding {
	var all *Cluster
	seen := map[string]*facts.Host{}
	for _, m := range machines {
		seen[m.ID()] = m.Facts
		if m.Seen != nil && m.Seen.Cluster != nil && all == nil {
			all = m.Seen.Cluster
		}
	}
	var api apiName
	if set := machine.SetOf(inv, seen); set.First != nil {
		api = apiName{set.APIName(), set.APIAddress()}
	}
	quiet := all == nil || slices.ContainsFunc(machines, func(m Machine) bool { return m.Seen == nil }) ||
		slices.ContainsFunc(all.Nodes, func(n facts.Node) bool { return !n.Ready })
	before := checkBefore(inv, machines)
	var out []Finding
	for _, m := range machines {
		var found []Finding
		s := newSubject(inv, m, all)
		s.api, s.quiet = api, quiet
		found = append(found, unreached(m)...)
		for _, row := range catalogue {
			if (m.Facts == nil && m.Seen == nil) || row.find == nil {
				continue
			}
			if evidence := row.find(s); len(evidence) > 0 {
				found = append(found, s.finding(row, evidence))
			}
		}
		for _, f := range before[m.ID()] {
			if !slices.ContainsFunc(found, func(other Finding) bool { return other.ID == f.ID || explains(other.ID, f.ID) }) {
				found = append(found, f)
			}
		}
		found = slices.DeleteFunc(withoutConsequences(found), func(f Finding) bool { return slices.Contains(ignore, f.ID) })
		Worst(found)
		out = append(out, found...)
	}
	return out
}

func newSubject(inv *inventory.Inventory, m Machine, all *Cluster) *subject {
	s := &subject{Machine: m, inv: inv, f: m.Facts, e: m.Seen, told: m.Facts != nil && m.Seen != nil}
	if s.f == nil {
		s.f = &facts.Host{}
		s.Facts = s.f
	}
	if s.e == nil {
		s.e = &Evidence{}
	}
	if s.slow = s.e.Asked && s.f.NVIDIA.Loaded != "" && gaveUp(s.e.SMI) && !gaveUp(s.f.NVIDIA.SMI); s.slow {
		answered := *s.e
		answered.SMI = s.f.NVIDIA.SMI // facts.sh has more patience
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
		s.said = append(s.said, saidBy(p.Name, all.PluginSaid)...)
	}
	for _, p := range all.Waiting {
		if p.Node != "" && p.Node == name || p.Node == "" && m.Seen != nil && m.Seen.Cluster == all {
			s.waiting = append(s.waiting, p)
		}
	}
	for pod, node := range all.WeavePods {
		if node == name {
			s.weave = append(s.weave, saidBy(pod, all.WeaveSaid)...)
		}
	}
	for _, e := range all.Events {
		if e.Node == name && !s.f.Now.IsZero() && s.f.Now.Sub(e.Time) < recent {
			s.events = append(s.events, e)
		}
	}
	return s
}

// saidBy are the lines of a pod.
func saidBy(pod string, lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "[pod/"+pod+"/") })
}

// recent is how old a warning of the cluster's may be: it keeps them for an hour, and what they tell of may be over.
const recent = 10 * time.Minute

// finding is a row's, with its evidence, where commands name the host.
func (s *subject) finding(r Row, evidence []string) Finding {
	f := Finding{ID: r.ID, Severity: r.Severity, Host: s.ID(), Cause: r.Cause, Repair: r.Repair, Force: r.force}
	if s.f.Hostname != "" || s.Name != "" {
		f.Node = s.NodeName()
	}
	for _, line := range evidence[:min(len(evidence), most)] {
		f.Evidence = append(f.Evidence, printable.Short(line, 300))
	}
	fix := r.Fix
	if r.repairable != nil && !r.repairable(s) {
		f.Repair, f.Force = ByHand, false
		if r.otherwise != nil {
			f.Cause, fix = r.otherwise.cause, r.otherwise.fix
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

// unreached are the findings of a host that did not tell, or not everything.
func unreached(m Machine) []Finding {
	if m.Err == nil {
		return nil
	}
	var out []Finding
	for _, e := range reason.All(m.Err) {
		// Two questions meet the same closed door; of what a host answers badly, each is another thing.
		if e.ID == reason.FactsFailed || !slices.ContainsFunc(out, func(f Finding) bool { return f.ID == string(e.ID) }) {
			out = append(out, fromReason(m.ID(), e))
		}
	}
	if len(out) == 0 {
		out = append(out, fromReason(m.ID(), &reason.Error{ID: reason.FactsFailed, Host: m.ID(), Err: m.Err}))
	}
	return out
}

// Refused are the findings of a plan that refuses to change what the cluster was made with, which works as it is.
func Refused(err error) []Finding {
	var out []Finding
	for _, e := range reason.All(err) {
		if e.ID == reason.KubernetesVersionChange || e.ID == reason.ClusterSettingFixed {
			out = append(out, fromReason(e.Host, e))
		}
	}
	return out
}

// fromReason is what kgpu calls by a reason anyway.
func fromReason(host string, e *reason.Error) Finding {
	evidence := e.Detail
	if evidence == "" && e.Err != nil {
		evidence = e.Err.Error()
	}
	f := Finding{ID: string(e.ID), Severity: Error, Host: host, Cause: reason.Lookup(e.ID).Meaning, Fix: e.AdviceLine()}
	if slices.Contains(onlyWarnings, e.ID) {
		f.Severity = Warning
	}
	if evidence != "" {
		f.Evidence = []string{printable.Short(evidence, 300)}
	}
	return f
}

// onlyWarnings are what preflight or the plan refuses before anything is made, and what a node can live with.
var onlyWarnings = []reason.ID{reason.HostRebootPending, reason.HostClockSkew, reason.HostTooSmall, reason.NetMTUDiffers, reason.HostKernelTooOld, reason.KubernetesVersionChange, reason.ClusterSettingFixed}

// pointless are checks of preflight that say nothing new about a node: they are for the choice of what is to be installed.
var pointless = []reason.ID{reason.GPUDriverImpossible, reason.GPUDriverMissing, reason.GPUDriverForeign, reason.GPUCUDAImpossible, reason.GPUSecureBootUnsigned, reason.HostPackageHeld}

// checkBefore is the preflight list, on the hosts that told what they are.
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
		return out // who is in which cluster is told by its control plane
	}
	for _, e := range preflight.Check(inv, list, inv.Ignore) {
		if slices.Contains(pointless, e.ID) && works[e.Host] {
			continue
		}
		out[e.Host] = append(out[e.Host], fromReason(e.Host, e))
	}
	return out
}

// explains reports whether the row of one ID says why there is another.
func explains(id, other string) bool {
	i := slices.IndexFunc(catalogue, func(r Row) bool { return r.ID == id })
	return i >= 0 && slices.Contains(catalogue[i].explains, other)
}

// withoutConsequences leaves out what another finding of the same host explains.
func withoutConsequences(found []Finding) []Finding {
	gone := map[string]bool{}
	for _, f := range found {
		i := slices.IndexFunc(catalogue, func(r Row) bool { return r.ID == f.ID })
		if i < 0 {
			continue
		}
		for _, id := range catalogue[i].explains {
			gone[id] = gone[id] || id != f.ID
		}
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return gone[f.ID] })
}
