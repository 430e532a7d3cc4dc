package plan

import (
	"slices"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// Mend is what is to be done about what is wrong with a host.
type Mend struct {
	Host     string   // its ID
	Why      string   // in a few words
	Units    []string // that are down: they start
	Packages []string // that kgpu held: they are held again
	Module   bool     // the driver's modules are loaded
	Plugin   bool     // the node's device plugin starts anew
	Reboot   bool     // drained, rebooted, and with pods again
	Force    bool     // of a reboot: the driver hangs, and what uses it does not end

	Seen *facts.Host // the host when it was found out; nil: it is as it was
}

// outdated says why a mend is not for the host as it is now; empty: it is.
func (m Mend) outdated(now *facts.Host) string {
	was := m.Seen
	if was == nil {
		was = now
	}
	switch {
	case was.BootID != now.BootID:
		return "the host has rebooted since it was looked at"
	case (was.Kubelet == nil) != (now.Kubelet == nil), was.Kubelet != nil && was.Kubelet.CAHash != now.Kubelet.CAHash:
		return "the host has left its cluster, or come to one, since it was looked at"
	case was.Ledger > 0 && now.Ledger == 0:
		return "what kgpu changed on the host was taken back since it was looked at"
	}
	return ""
}

// hungPatience is how long pods have that can end, of a node whose driver hangs, in seconds.
const hungPatience = 120

// Repair plans what `kgpu doctor --fix` does. Hosts without facts are left out, and those that are not what they were when they
// were found to need it.
func Repair(inv *inventory.Inventory, seen map[string]*facts.Host, mends []Mend) (*graph.Graph, error) {
	b, err := newIdentified(inv, seen)
	if err != nil {
		return nil, err
	}
	for _, m := range mends {
		i := slices.IndexFunc(b.hosts, func(h *host) bool { return h.id == m.Host })
		if i < 0 {
			continue
		}
		h := b.hosts[i]
		if why := m.outdated(h.Facts); why != "" {
			b.warn("%s is not repaired (%s): %s", h.id, m.Why, why)
			continue
		}
		h.cards = len(machine.Cards(b.Inventory, h.Facts))
		b.mend(h, m)
	}
	b.letIn(nil)
	return &b.graph, b.graph.Validate()
}

func (b *builder) mend(h *host, m Mend) {
	if len(m.Packages) > 0 {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "doctor/hold"}, Reason: m.Why,
			Input: graph.Input{Values: map[string]string{"packages": lines(m.Packages...)}},
		})
	}
	if m.Reboot {
		b.restart(h, m)
		return // it starts everything anew
	}
	if m.Module {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "doctor/module"}, Reason: m.Why,
			Input: graph.Input{Values: b.loadValues(h)},
		})
	}
	if len(m.Units) > 0 {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "doctor/units"}, Reason: m.Why,
			Input: graph.Input{Values: map[string]string{
				"units": lines(m.Units...), "node": h.node, "cards": strconv.Itoa(machine.PluginDeviceCount(b.Inventory, h.Facts)),
			}},
		})
	}
	if m.Plugin && b.NodeOf(h.Machine) != nil {
		b.onCluster(graph.Step{
			Ref: graph.Ref{ID: "doctor/plugin/" + h.node}, Title: "restart the device plugin of " + h.node, Reason: m.Why,
			Needs: slices.Clone(h.last), Input: graph.Input{Values: map[string]string{"node": h.node}},
		})
	}
}

// restart plans a reboot, of a node after it was drained.
func (b *builder) restart(h *host, m Mend) {
	b.drainNode(h, m.Why, m.Force)
	force := "no"
	if m.Force {
		force = "yes"
	}
	b.reboot(h, "reboot", m.Why, m.Why, "no")
	b.graph.Steps[len(b.graph.Steps)-1].Input.Values["force"] = force
}
