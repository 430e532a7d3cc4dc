package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// units are how much of each resource the node of a host shall have. Cards count that the bus has, whether the driver sees
// them or not.
func (b *builder) units(h *host) map[string]int {
	whole := h.cards
	for _, g := range h.Facts.NVIDIA.GPUs {
		if machine.MIGPartitioned(b.Inventory, g) {
			whole--
		}
	}
	out := map[string]int{}
	if whole > 0 {
		out[b.mechanism().Resource()] = whole * b.Inventory.GPU.Share()
	}
	for _, o := range machine.PluginDevices(b.Inventory, h.Facts) {
		if strings.HasPrefix(o.UUID, "MIG-") {
			out[o.Resource] += o.Share
		}
	}
	return out
}

// allocatable is how much of a resource a node has to give.
func allocatable(n *facts.Node, resource string) int {
	if n == nil {
		return 0
	}
	return n.Allocatable[resource]
}

const (
	pluginConfig    = "config.yaml"
	pluginConfigSum = "kgpu.dev/config-sha256" // annotates the plugin's pods
)

// share makes the device plugin share cards as the inventory wants it, and keeps the hash of its configuration. Pods are
// made anew when that changes: none of the programs reads it twice.
// Source of the format: k8s-device-plugin 0.20.0, api/config/v1.
func (b *builder) share(objects []object) error {
	gpu := b.Inventory.GPU
	config := object{"version": "v1", "flags": object{"migStrategy": string(gpu.MIGStrategy)}}
	for name, s := range map[string]inventory.Sharing{"timeSlicing": gpu.TimeSlicing, "mps": gpu.MPS} {
		if s.Replicas > 0 {
			config["sharing"] = object{name: object{"resources": []any{object{"name": catalog.GPUResource, "replicas": s.Replicas}}}}
		}
	}
	text, err := manifests.Encode(config)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(text))
	b.pluginConfig = hex.EncodeToString(sum[:])
	for _, o := range objects {
		switch o["kind"] {
		case "ConfigMap":
			o["data"] = object{pluginConfig: text}
		case "DaemonSet":
			if err := b.sharePods(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) sharePods(daemonSet object) error {
	if b.Inventory.GPU.MPS.Replicas > 0 {
		more, err := b.objects(manifests.MPS)
		if err != nil {
			return err
		}
		patch(daemonSet, more[0])
	}
	patch(daemonSet, object{"spec": object{"template": object{"metadata": object{"annotations": object{pluginConfigSum: b.pluginConfig}}}}})
	if b.Inventory.GPU.MIGStrategy != inventory.MIGNone {
		// Without it a container with all cards does not see how they are cut.
		manifest.Containers([]object{daemonSet}, func(c object) { manifest.SetEnv(c, "NVIDIA_MIG_MONITOR_DEVICES", "all") })
	}
	return nil
}

// patch puts more into an object as kubectl's strategic patches do: mappings are merged, and containers of the same name;
// other lists get longer.
func patch(into, more object) {
	for key, value := range more {
		switch value := value.(type) {
		case object:
			if have, ok := into[key].(object); ok {
				patch(have, value)
				continue
			}
		case []any:
			have, _ := into[key].([]any)
			for _, item := range value {
				if at := named(have, item); key == "containers" && at != nil {
					patch(at, item.(object))
				} else {
					have = append(have, item)
				}
			}
			into[key] = have
			continue
		}
		into[key] = value
	}
}

// named is the item of a list that has the same name.
func named(list []any, item any) object {
	for _, have := range list {
		if have, ok := have.(object); ok && have["name"] == item.(object)["name"] {
			return have
		}
	}
	return nil
}
