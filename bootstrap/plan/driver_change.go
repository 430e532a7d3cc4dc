package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// drained reports whether a former run drained the node and did not let it in again.
func (b *builder) drained(h *host) bool { return machine.IsDrained(b.NodeOf(h.Machine)) }

// replace plans what has to be out of the way of a driver, and returns what plans the reboot once the driver is installed, if one is.
// A node is drained before anything of that. found are the facts of the host with what is there.
func (b *builder) replace(h *host, found *facts.Host, c machine.DriverChoice) (reboot func()) {
	n := found.NVIDIA
	stale := n.Loaded != "" && len(c.Replaces) > 0 || machine.StaleModule(found)
	var why string
	var fetched []graph.Ref
	switch {
	case len(c.Replaces) > 0:
		why, fetched = replacement(found, c), h.last // a download that fails drains no node
	case n.Nouveau.Users > 0:
		why = "nouveau is in use: the host reboots"
	case stale:
		why = machine.DriverTrouble(b.Inventory, found)
	default:
		return nil
	}
	b.drainNode(h, why, false, fetched...)
	if len(c.Replaces) > 0 {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "driver/remove"}, Reason: why,
			Input: graph.Input{Values: map[string]string{"packages": lines(c.Replaces...)}},
		})
	}
	switch {
	case n.Nouveau.Users > 0:
		return func() {
			b.reboot(h, "reboot", "the driver nouveau is in use, only a reboot gets rid of it", "nouveau is in use", "no")
		}
	case stale:
		return func() {
			b.reboot(h, "reboot, but only if the old modules cannot be unloaded", "driver "+n.Loaded+" is loaded", "the modules of driver "+n.Loaded+" are in use", "yes")
		}
	}
	return nil
}

// fetchDriver plans that all of a driver is on the host before another one goes.
func (b *builder) fetchDriver(h *host, found *facts.Host, c machine.DriverChoice) {
	p := machine.DriverPackages(h.Facts, c.Driver)
	values := map[string]string{"headers": lines(p.First...), "packages": lines(append(slices.Clone(p.Driver), machine.SameVersionPackages(h.Facts, c)...)...), "branch": strconv.Itoa(c.Branch), "gone": lines(c.Replaces...)}
	if c.Prebuilt() {
		way, known := h.DriverWay()
		values["ways"] = lines(machine.WayLines(h.Facts, c, installWays(!known || way.Name == machine.WayNewer)...)...)
	}
	b.add(h, graph.Step{
		Ref: graph.Ref{ID: "driver/fetch"}, Title: fmt.Sprintf("download the driver %d", c.Branch), Reason: replacement(found, c),
		Input: graph.Input{Values: values},
	})
}

// replacement says which driver gives way to which, the first by its package with the library if there is one.
func replacement(f *facts.Host, c machine.DriverChoice) string {
	name := c.Replaces[0]
	for _, other := range c.Replaces {
		if p, _ := machine.InstalledDriver(f, other); p.Library && other == machine.WithoutArchitecture(other) {
			name = other
		}
	}
	return fmt.Sprintf("%s %s is replaced by %s", name, f.Packages[name].Version, c.Driver)
}

// withoutDriver are the facts of a host that has lost these packages of its driver.
func withoutDriver(f *facts.Host, packages []string) *facts.Host {
	out := *f
	out.Packages, out.Units = maps.Clone(f.Packages), maps.Clone(f.Units)
	maps.DeleteFunc(out.Packages, func(name string, _ facts.Package) bool { return slices.Contains(packages, name) })
	maps.DeleteFunc(out.Units, func(name string, _ facts.Unit) bool { return strings.HasPrefix(name, "nvidia-") })
	out.NVIDIA.Loaded, out.NVIDIA.Module, out.NVIDIA.Library, out.NVIDIA.GPUs, out.NVIDIA.SMI = "", "", "", nil, 0
	return &out
}

// reboot plans one; stale: yes, if the module that is loaded is not the one that was installed.
func (b *builder) reboot(h *host, title, reason, tell, stale string) {
	serial := graph.RebootMutex
	if h.drain != (graph.Ref{}) {
		serial = "" // Pace counts the node from its drain on
	}
	b.add(h, graph.Step{
		Ref: graph.Ref{ID: "driver/reboot"}, Title: title, Reason: reason,
		Input: graph.Input{Values: map[string]string{"boot_id": h.Facts.BootID, "reason": tell, "stale": stale}},
		Mutex: serial,
	})
}

// drainNode plans that the pods of a host leave it, once and if it is a node; the host's chain goes on when they have. hangs: so
// does the driver there, and what uses it does not end. after is what comes before the drain.
func (b *builder) drainNode(h *host, why string, hangs bool, after ...graph.Ref) {
	if h.drain != (graph.Ref{}) || !h.InCluster() || b.NodeOf(h.Machine) == nil && b.APIAnswers() {
		return
	}
	h.away = true
	drain := graph.Step{
		Ref: graph.Ref{ID: "node/drain/" + h.node}, Title: "drain node " + h.node, Reason: why, Drains: h.node, Needs: once(slices.Concat(after, []graph.Ref{h.started})),
		Input: graph.Input{Values: map[string]string{"node": h.node}},
	}
	if hangs {
		drain.Input.Values["patience"], drain.Timeout = strconv.Itoa(hungPatience), medium
	}
	h.drain = b.onCluster(drain)
	h.last = append(slices.Clone(h.last), h.drain)
}

// letIn plans that drained nodes have pods again, each when its cards can be had.
func (b *builder) letIn(plugin []graph.Ref) {
	// The device plugin waits for the steps of the control planes, so the others wait for their nodes.
	workers := slices.DeleteFunc(slices.Clone(b.hosts), func(h *host) bool { return h.IsControlPlane() })
	for _, h := range slices.Concat(b.planes, workers) {
		if !h.away {
			continue
		}
		plugin := plugin
		if !h.IsControlPlane() && b.drained(h) && slices.ContainsFunc(b.planes, func(p *host) bool { return p.drain != (graph.Ref{}) }) {
			plugin = nil // its turn is before the control plane's
		}
		last := b.onCluster(graph.Step{
			Ref: graph.Ref{ID: "node/uncordon/" + h.node}, Title: "uncordon node " + h.node, Reason: "it is drained",
			Needs: slices.Concat(h.last, h.gpuLast, plugin), Input: graph.Input{Values: map[string]string{"node": h.node, "cards": strconv.Itoa(h.cards)}},
		})
		b.graph.DrainWindows = append(b.graph.DrainWindows, graph.DrainWindow{Drain: h.drain, Uncordon: last, Drained: b.drained(h), For: h.disrupting})
		h.gpuLast = []graph.Ref{last}
	}
}
