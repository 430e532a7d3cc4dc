package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// gpu reports a host's GPUs, and the pods that hold them.
func (j *reporter) gpu(h *Host, s *Observed, node *facts.Node) {
	if s.Facts != nil {
		j.cards(h, s.Facts)
	}
	if node == nil {
		return
	}
	use := map[string]int{}
	for _, p := range j.api.Pods {
		if p.Node != node.Name || len(p.Requests) == 0 || p.Phase == "Succeeded" || p.Phase == "Failed" {
			continue
		}
		held := map[string]int{}
		for what, n := range p.Requests {
			use[what] += n
			held[oneLine(what)] = n
		}
		h.GPU.Pods = append(h.GPU.Pods, Pod{oneLine(p.Namespace), oneLine(p.Name), oneLine(p.Phase), held})
	}
	names := maps.Clone(node.Capacity)
	if names == nil {
		names = map[string]int{}
	}
	maps.Copy(names, node.Allocatable)
	maps.Copy(names, use)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r := Resource{oneLine(name), node.Capacity[name], node.Allocatable[name], use[name]}
		if r.Capacity+r.Allocatable+r.InUse == 0 {
			continue // Kubernetes 1.6 has it on all nodes, and it stays after a device plugin
		}
		h.GPU.Resources = append(h.GPU.Resources, r)
		j.total(r)
		if r.Allocatable < r.Capacity {
			j.problem(h.Host, reason.GPUNotAllocatable, fmt.Sprintf("%s: %d of %d can be given to pods", r.Name, r.Allocatable, r.Capacity),
				"a GPU is not healthy: look for its Xid in `journalctl -k`, and at `kubectl -n kube-system logs ds/nvidia-device-plugin`")
		}
	}
}

// total adds a node's resource to the cluster's.
func (j *reporter) total(r Resource) {
	all := &j.report.Cluster.Cards
	i, found := slices.BinarySearchFunc(*all, r.Name, func(have Resource, name string) int { return strings.Compare(have.Name, name) })
	if !found {
		*all = slices.Insert(*all, i, Resource{Name: r.Name})
	}
	have := &(*all)[i]
	have.Capacity, have.Allocatable, have.InUse = have.Capacity+r.Capacity, have.Allocatable+r.Allocatable, have.InUse+r.InUse
}

// cards reports the host's cards on the PCI bus and the state of their driver.
func (j *reporter) cards(h *Host, f *facts.Host) {
	n := f.NVIDIA
	h.GPU.Driver = Driver{oneLine(n.Loaded), oneLine(n.Module), oneLine(n.Library)}
	h.GPU.Toolkit = oneLine(f.Packages["nvidia-container-toolkit"].Version)
	var missing []string
	for _, c := range machine.Cards(j.inv, f) {
		i := slices.IndexFunc(n.GPUs, func(g facts.GPU) bool { return g.Address == c.Address })
		if i < 0 {
			known, _ := catalog.LookupGPU(c.ID)
			h.GPU.Cards = append(h.GPU.Cards, Card{Address: oneLine(c.Address), Name: oneLine(known.Name)})
			missing = append(missing, c.Address)
			continue
		}
		g := n.GPUs[i]
		h.GPU.Cards = append(h.GPU.Cards, Card{oneLine(c.Address), oneLine(g.Name), oneLine(g.UUID), g.MemoryMiB, len(g.Instances)})
	}
	switch {
	case len(h.GPU.Cards) == 0:
	case facts.TimedOut(n.SMI):
		j.problem(h.Host, reason.GPUHung, "nvidia-smi gave no answer",
			"`kgpu doctor "+h.Host+"` says whether a task is stuck in the driver, which only a reboot helps, or the host may only be busy")
	case n.Loaded != "" && n.Library != "" && n.Loaded != n.Library:
		j.problem(h.Host, reason.GPUDriverMismatch, fmt.Sprintf("driver %s is loaded, and its libraries are %s", n.Loaded, n.Library), "")
	case n.Loaded != "" && n.Module != "" && n.Loaded != n.Module:
		j.problem(h.Host, reason.GPUDriverMismatch, fmt.Sprintf("driver %s is loaded, and %s is installed", n.Loaded, n.Module), "")
	case n.Loaded != "" && len(missing) > 0:
		j.problem(h.Host, reason.GPUNotAllCards, fmt.Sprintf("the driver sees %d of %s: not %s", len(n.GPUs), plural.Of(len(h.GPU.Cards), "card"), strings.Join(missing, ", ")), "")
	}
}
