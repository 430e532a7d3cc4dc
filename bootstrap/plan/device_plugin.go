package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
)

// gpuLabel is on the nodes with cards, for the device plugin and for people.
const gpuLabel = "kgpu.dev/gpu"

// wantsDevicePlugin wants it where cards are given to pods by plugins.
func (b *builder) wantsDevicePlugin() (wish, string) {
	if b.hasCards() && b.mechanism() == catalog.DevicePlugins {
		return apply, ""
	}
	return leave, ""
}

// fitDevicePlugin has the plugin give pods their cards as the runtime takes them, and share them as the inventory wants.
func (b *builder) fitDevicePlugin(objects []object) ([]object, error) {
	if b.Inventory.Runtime == inventory.Docker {
		// Docker's default runtime adds the cards that the mounts of a pod name.
		listDevices(objects, "volume-mounts")
		for _, o := range objects {
			if o["kind"] == "RuntimeClass" {
				o["handler"] = "docker"
			}
		}
	}
	if b.Inventory.Runtime == inventory.Containerd && !b.Minor.Has(catalog.CDIDevices) {
		listDevices(objects, "cdi-annotations")
	}
	return objects, b.share(objects)
}

// listDevices sets how the plugin tells the runtime which cards a container gets.
func listDevices(objects []object, strategy string) {
	manifest.Containers(objects, func(c object) {
		if c["name"] == pluginContainer {
			manifest.SetEnv(c, "DEVICE_LIST_STRATEGY", strategy)
		}
	})
}

const (
	devicePluginWorkload = "kube-system/daemonset/nvidia-device-plugin"
	pluginContainer      = "nvidia-device-plugin"
)

func (b *builder) hasCards() bool {
	return slices.ContainsFunc(b.hosts, func(h *host) bool { return h.cards > 0 })
}

// cardsReady plans the wait until every node offers what its host has, and what comes after it. plugin is the step that makes
// the device plugin what it shall be, if there is one.
func (b *builder) cardsReady(needs, plugin []graph.Ref) {
	if !b.hasCards() {
		return
	}
	needs = slices.Concat(needs, plugin)
	var want, reasons []string
	if len(plugin) > 0 {
		reasons = append(reasons, "the device plugin starts")
	}
	for _, h := range b.members() {
		if h.cards == 0 {
			continue
		}
		needs = append(needs, h.gpuLast...)
		if node := b.NodeOf(h.Machine); node != nil && len(node.GPULabels) == 0 && b.mechanism() == catalog.DevicePlugins && b.labelsMissing(h) != "" {
			reasons = append(reasons, h.node+" was not labelled with its cards") // which comes after this: its cards were never proven
		} else if why := b.touched(h, node); why != "" {
			reasons = append(reasons, why)
		}
		units := b.units(h)
		for _, resource := range sortedKeys(units) {
			want = append(want, fmt.Sprintf("%s %d %s", h.node, units[resource], resource))
			if have := allocatable(b.NodeOf(h.Machine), resource); have != units[resource] {
				reasons = append(reasons, fmt.Sprintf("%s offers %d of %d %s", h.node, have, units[resource], unitName(resource)))
			}
		}
	}
	if len(want) > 0 && slices.ContainsFunc(b.planes, func(h *host) bool { return h.Facts.Unproven }) {
		reasons = append(reasons, "the cards were not proven to the end")
	}
	if len(reasons) == 0 {
		b.skip(b.admin, "gpu/ready", "all cards can be had")
		b.gpuLabels(needs, "")
		return
	}
	step := graph.Step{
		Ref: graph.Ref{ID: "gpu/ready"}, Reason: strings.Join(reasons, ", "),
		Needs: needs, Input: graph.Input{Values: map[string]string{"nodes": lines(want...), "config": b.pluginConfig}},
	}
	byHand := step // no proof follows
	byHand.Host = b.admin.id
	step.Input.Values = maps.Clone(step.Input.Values)
	step.Input.Values["prove"] = "yes"
	step.ByHand = []*graph.Step{&byHand}
	ready := b.onCluster(step)
	fresh := ""
	if len(plugin) > 0 {
		fresh = reasons[0]
	}
	b.gpuLabels([]graph.Ref{ready}, fresh)
}

// touched says what changes, or has changed since the node's cards were proven, of what gives them to its pods; empty: nothing.
func (b *builder) touched(h *host, node *facts.Node) string {
	if node == nil {
		return ""
	}
	for _, s := range b.graph.Steps {
		if s.Host == h.id && (s.Disrupts != "" || graph.Matches([]string{"driver/install", "driver/load", "driver/fabric", "driver/reboot", "gpu/toolkit", "runtime/*"}, s.ID)) {
			return fmt.Sprintf("%s changes what gives pods the cards of %s", s.ID, h.node)
		}
	}
	// The label comes when the cards can be had, before they are proven: a run was cut off between.
	if driver := node.Labels[driverFeature]; slices.Contains(node.GPULabels, driverFeature) && h.Facts.NVIDIA.Loaded != "" && driver != h.Facts.NVIDIA.Loaded {
		return fmt.Sprintf("%s was proven with driver %s", h.node, driver)
	}
	return ""
}

// unitName is what messages call a unit of a resource.
func unitName(resource string) string {
	if resource == catalog.GPUResource || resource == catalog.Accelerators.Resource() {
		return "cards"
	}
	return resource
}
