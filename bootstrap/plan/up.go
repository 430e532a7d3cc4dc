// Package plan decides what has to be done: (inventory, facts, catalog) → a graph of steps, each with its reason.
// It is pure: no clock, no network, no files.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Up plans what makes the cluster of the inventory out of hosts in the state that the facts tell.
// Facts are by host ID. Hosts without facts are left out: add-worker looks at control planes and the new hosts only.
// What was made by hand stays as it is.
func Up(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
	return up(inv, seen, false)
}

// UpAdopting plans the same, and takes over what was made by hand where that is safe.
func UpAdopting(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
	return up(inv, seen, true)
}

func up(inv *inventory.Inventory, seen map[string]*facts.Host, adopt bool) (*graph.Graph, error) {
	b, err := prepared(inv, seen, adopt, (*builder).chooseRound)
	if err == nil && b.drainsPlanesBeforeUpgrade() {
		b, err = prepared(inv, seen, adopt, (*builder).upgradeLater)
	}
	if err != nil {
		return nil, err
	}
	b.upgrade()
	if err := b.bringUp(); err != nil {
		return nil, err
	}
	if !b.onlyComesUp() {
		b.toolkits()
	}
	b.backups()
	b.warnings()
	b.graph.Sort() // drains may wait for what is planned after them
	return &b.graph, b.graph.Validate()
}

// prepared plans what each host has to be before there is anything of the cluster on it. round chooses the version of Kubernetes that
// this round brings.
func prepared(inv *inventory.Inventory, seen map[string]*facts.Host, adopt bool, round func(*builder) error) (*builder, error) {
	b, err := newIdentified(inv, seen)
	if err != nil {
		return nil, err
	}
	b.Adopt = adopt
	b.FixVerdicts()
	if err := errors.Join(b.refuseUnfinishedRestore(), b.refuseVersionChange(), b.refuseFixed()); err != nil {
		return nil, err
	}
	if err := round(b); err != nil {
		return nil, err
	}
	for _, h := range b.hosts {
		h.away = b.drained(h)
		b.startKubelet(h)
		b.clean(h)
		b.prepareOS(h)
		b.repositories(h)
		b.runtime(h)
		b.packages(h)
		h.drainedFirst = h.drain != graph.Ref{}
		if err := b.gpus(h); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// host is a machine with its inventory entry, its facts and what follows from both.
type host struct {
	*machine.Machine
	id      string
	node    string               // name of its node object
	addr    netip.Addr           // its address inside the cluster
	last    []graph.Ref          // the steps that prepare it so far, in order
	cards   int                  // that Kubernetes shall have
	choice  machine.DriverChoice // of their driver
	gpuLast []graph.Ref          // the last step for them

	replaced bool      // another driver comes
	away     bool      // its node is drained, by this plan or a former run, and let in again at the end
	drain    graph.Ref // the step that drains it; none: a former run did

	started graph.Ref // the step that starts its kubelet; none: it runs

	drainedFirst bool     // before its driver and its Kubernetes change, as when docker restarts
	stays        []string // what of its node is left for later, as pods with cards run there

	disrupting []graph.Ref // the steps that its node is drained for

	waits bool // a control plane that does not join before another answers again
}

// builder collects the graph.
type builder struct {
	*machine.Set
	hosts []*host // its machines
	graph graph.Graph

	first  *host   // as the set's; never nil
	admin  *host   // as the set's
	planes []*host // all control planes

	planesUpgraded []graph.Ref // the last step with which one of the others comes to another version

	pluginConfig string // hash of the device plugin's configuration

	notebookChoice machine.NotebookChoice
}

func newBuilder(inv *inventory.Inventory, seen map[string]*facts.Host) (*builder, error) {
	b := &builder{Set: machine.SetOf(inv, seen)}
	version := b.Inventory.Kubernetes.Version
	if _, ok := catalog.Kubernetes(version.Minor); !ok {
		return nil, fmt.Errorf("the catalog has no Kubernetes %s", version.MinorString())
	}
	if b.First == nil {
		return nil, fmt.Errorf("no facts of a control plane host")
	}
	for _, m := range b.Machines {
		h := &host{Machine: m, id: m.ID(), node: m.NodeName(), addr: m.NodeAddress()}
		b.hosts = append(b.hosts, h)
		if m.IsControlPlane() {
			b.planes = append(b.planes, h)
		}
		if m == b.First {
			b.first = h
		}
		if m == b.Admin {
			b.admin = h
		}
	}
	return b, nil
}

// newIdentified returns a builder for hosts that are what they call themselves.
func newIdentified(inv *inventory.Inventory, seen map[string]*facts.Host) (*builder, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	return b, b.identities()
}

// refuse is the error of something that is not planned. host is the one that it concerns; empty: none.
func refuse(id reason.ID, host, format string, args ...any) error {
	return &reason.Error{ID: id, Host: host, Doing: "planning", Detail: fmt.Sprintf(format, args...)}
}

// warn adds a warning to the plan.
func (b *builder) warn(format string, args ...any) {
	b.graph.Warnings = append(b.graph.Warnings, fmt.Sprintf(format, args...))
}

// members are the hosts that are nodes when the plan is carried out: all but control planes that wait for others.
func (b *builder) members() []*host {
	return slices.DeleteFunc(slices.Clone(b.hosts), func(h *host) bool { return h.waits })
}

// add appends a step to the host's own chain. A node that serves is drained before the first that disrupts its containers.
func (b *builder) add(h *host, s graph.Step) graph.Ref {
	Kinds.Complete(&s)
	if s.Disrupts != "" {
		b.drainNode(h, s.Title+": "+s.Disrupts, false)
	}
	s.Needs = append(slices.Clone(h.last), s.Needs...)
	added := b.side(h, s)
	h.last = []graph.Ref{added}
	if h.away && (s.Disrupts != "" || Kinds.Of(s.ID).Disrupts) {
		h.disrupting = append(h.disrupting, added)
	}
	return added
}

// side appends a step that needs other steps only, beside the host's chain.
func (b *builder) side(h *host, s graph.Step) graph.Ref {
	s.Host = h.id
	Kinds.Complete(&s)
	b.graph.Steps = append(b.graph.Steps, &s)
	return s.Ref
}

// onCluster appends a step that runs kubectl.
func (b *builder) onCluster(s graph.Step) graph.Ref { return b.side(b.admin, s) }

func (b *builder) skip(h *host, id, why string) {
	b.graph.Skipped = append(b.graph.Skipped, graph.Skipped{Ref: graph.Ref{Host: h.id, ID: id}, Reason: why})
}

// unless adds s when there are reasons for it, and records it as skipped otherwise. What a node would be drained for is left for later
// while its pods are not to be disturbed.
func (b *builder) unless(h *host, reasons []string, satisfied string, s graph.Step) bool {
	if len(reasons) == 0 {
		b.skip(h, s.ID, satisfied)
		return false
	}
	if s.Disrupts != "" && len(h.Facts.Busy) > 0 {
		b.skip(h, s.ID, "for later: pods with cards run there")
		h.stays = append(h.stays, "without "+s.ID)
		return false
	}
	s.Reason = strings.Join(reasons, "; ")
	b.add(h, s)
	return true
}

func lines(list ...string) string { return strings.Join(list, "\n") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (b *builder) warnings() {
	b.oldWarnings()
	b.lockWarnings()
	b.leftDistributions()
	skewed := b.Skewed()
	for _, id := range sortedKeys(skewed) {
		b.warn("%s: %s", id, skewed[id])
	}
	b.busyNodes()
	b.endedDrivers()
	b.oldContainerds()
	b.pressures()
	if b.Inventory.Network == inventory.Weave && !b.ClusterExists() {
		b.warn("network weave: version 2.9.0 of December 2024 is its last release; flannel and calico are one word away")
	}
	if b.webSocketFault() {
		b.warn("docker on Kubernetes %s: the kubelet gate ExtendWebSocketsToKubelet is turned off, because exec, attach and cp fail with cri-dockerd %s otherwise",
			b.Inventory.Kubernetes.Version.MinorString(), catalog.CRIDockerd.Version)
	}
}

// pressures warns of nodes that take no pods because something of theirs is used up.
func (b *builder) pressures() {
	for _, h := range b.hosts {
		n := b.NodeOf(h.Machine)
		if n == nil {
			continue
		}
		for _, taint := range n.Taints {
			what, _, _ := strings.Cut(strings.TrimPrefix(taint, "node.kubernetes.io/"), "=")
			if slices.Contains([]string{"disk-pressure", "memory-pressure", "pid-pressure"}, what) {
				b.warn("%s: its node takes no new pods: %s; `kubectl describe node %s` says more", h.id, what, h.node)
			}
		}
	}
}

// lockWarnings names those who have the package manager of a host now that has work to do: its steps wait for them.
func (b *builder) lockWarnings() {
	for _, h := range b.hosts {
		works := slices.ContainsFunc(b.graph.Steps, func(s *graph.Step) bool { return s.Host == h.id })
		if holder := h.Facts.Apt.LockHolder; holder != "" && works {
			b.warn("%s: the package manager is held by %s: steps that install packages wait for it", h.id, holder)
		}
	}
}
