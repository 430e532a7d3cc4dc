package catalog

import "maps"

// Mechanism is how the kubelet of a cluster offers cards.
type Mechanism string

// The mechanisms.
const (
	// Accelerators is the kubelet's own, of 1.6 to 1.10: it hands out the device files of docker containers and nothing
	// else, the driver's libraries come by hostPath. Source: pkg/kubelet/gpu/nvidia, pkg/features of k8s.io/kubernetes.
	Accelerators Mechanism = "Accelerators"
	// DevicePlugins is a program beside the kubelet that hands out cards.
	DevicePlugins Mechanism = "DevicePlugins"
)

// Resource is what a container asks for to get a card.
// Source: staging/src/k8s.io/api/core/v1 of 1.9 (ResourceNvidiaGPU); the device plugin's README.
func (m Mechanism) Resource() string {
	if m == Accelerators {
		return "alpha.kubernetes.io/nvidia-gpu"
	}
	return GPUResource
}

// The minors with the gate Accelerators, see gates.tsv: the kubelet of another one does not start with it.
const (
	firstAccelerators = 6
	lastAccelerators  = 10
)

// firstDevicePlugins is the minor from which the gate DevicePlugins is on by itself.
const firstDevicePlugins = 10

// Gates are the feature gates of a cluster: those that kgpu sets by itself, and the user's, which win.
func (m Minor) Gates(user map[string]bool) map[string]bool {
	gates := map[string]bool{}
	if firstAccelerators <= m.Number && m.Number <= lastAccelerators {
		gates[string(Accelerators)] = true
	}
	maps.Copy(gates, user)
	return gates
}

// Mechanism is the one by which kgpu's pods get cards; empty: the gates leave none. From 1.10 it is the device plugin, although
// the gate Accelerators is still there. In 1.8 and 1.9 the gate DevicePlugins lets others bring a plugin: NVIDIA's asks for
// 1.10. Source: https://github.com/NVIDIA/k8s-device-plugin, "Prerequisites".
func (m Minor) Mechanism(user map[string]bool) Mechanism {
	gates := m.Gates(user)
	on, said := gates[string(DevicePlugins)]
	switch {
	case m.Number >= firstDevicePlugins && (on || !said):
		return DevicePlugins
	case gates[string(Accelerators)]:
		return Accelerators
	}
	return ""
}
