package plan

import (
	"fmt"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// gpuLabel is on the nodes with cards, for the device plugin and for people.
const gpuLabel = "kgpu.dev/gpu"

// devicePlugin plans what makes Kubernetes schedule cards, and returns its step.
func (b *builder) devicePlugin(started []Ref) ([]Ref, error) {
	if !b.hasCards() || b.mechanism() != catalog.DevicePlugins {
		return nil, nil
	}
	objects, err := decodeManifest(manifests.DevicePlugin)
	if err != nil {
		return nil, err
	}
	if b.inv.Runtime == inventory.Docker {
		// Docker's default runtime adds the cards that the mounts of a pod name.
		containers(objects, func(c object) { setEnv(c, "DEVICE_LIST_STRATEGY", "volume-mounts") })
		for _, o := range objects {
			if o["kind"] == "RuntimeClass" {
				o["handler"] = "docker"
			}
		}
	}
	objects = Adapt(b.minor, objects)
	b.pullFromRegistry(objects)
	manifest, hash, err := encodeManifest(objects)
	if err != nil {
		return nil, err
	}
	reason := b.networkMissing(devicePluginWorkload, hash)
	if reason == "" {
		b.skip(b.cp, "gpu/device-plugin", "the device plugin is applied")
		return nil, nil
	}
	return []Ref{b.side(b.cp, Step{
		Ref: Ref{ID: "gpu/device-plugin"}, Title: "let Kubernetes schedule cards", Reason: reason, Script: "network-apply", Needs: started,
		Input: Input{Values: map[string]string{"manifest": manifest}}, Retry: Transient, Timeout: medium,
	})}, nil
}

const devicePluginWorkload = "kube-system/daemonset/nvidia-device-plugin"

func (b *builder) hasCards() bool {
	for _, h := range b.hosts {
		if h.cards > 0 {
			return true
		}
	}
	return false
}

// cardsReady plans the wait until every node offers as many cards as the host has.
func (b *builder) cardsReady(needs []Ref) {
	if !b.hasCards() {
		return
	}
	var want, reasons []string
	for _, h := range b.hosts {
		if h.cards == 0 {
			continue
		}
		want = append(want, fmt.Sprintf("%s %d", h.node, h.cards))
		needs = append(needs, h.gpuLast...)
		if have := b.offered(h); have != h.cards {
			reasons = append(reasons, fmt.Sprintf("%s offers %d of %d cards", h.node, have, h.cards))
		}
	}
	if len(reasons) == 0 {
		b.skip(b.cp, "gpu/ready", "all cards can be had")
		return
	}
	b.side(b.cp, Step{
		Ref: Ref{ID: "gpu/ready"}, Title: "wait until all cards can be had", Reason: strings.Join(reasons, ", "), Script: "gpu-ready",
		Needs: needs, Input: Input{Values: map[string]string{"nodes": lines(want...), "resource": b.mechanism().Resource()}}, Timeout: 15 * time.Minute,
	})
}
