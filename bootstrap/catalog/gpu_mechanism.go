package catalog

import "maps"

// Mechanism is how a kubelet offers GPUs to pods.
type Mechanism string

const (
	// Accelerators is built into the kubelets of 1.6 to 1.10. It gives docker containers only the device files; the
	// driver's libraries are mounted by hostPath. Source: pkg/kubelet/gpu/nvidia, pkg/features of k8s.io/kubernetes.
	Accelerators Mechanism = "Accelerators"
	// DevicePlugins is a program beside the kubelet that offers GPUs.
	DevicePlugins Mechanism = "DevicePlugins"
)

// Resource is the resource that a container requests to get a GPU.
// Source: staging/src/k8s.io/api/core/v1 of 1.9 (ResourceNvidiaGPU); the device plugin's README.
func (m Mechanism) Resource() string {
	if m == Accelerators {
		return "alpha.kubernetes.io/nvidia-gpu"
	}
	return GPUResource
}

// These are the minors with the feature gate Accelerators, see gates.tsv. Other kubelets do not start with it.
const (
	firstAccelerators = 6
	lastAccelerators  = 10
)

// firstDevicePlugins is the first minor with the feature gate DevicePlugins on by default.
const firstDevicePlugins = 10

// Gates are a cluster's feature gates: those that kgpu sets by itself, overridden by the user's.
func (m Minor) Gates(user map[string]bool) map[string]bool {
	gates := map[string]bool{}
	if firstAccelerators <= m.Number && m.Number <= lastAccelerators {
		gates[string(Accelerators)] = true
	}
	maps.Copy(gates, user)
	return gates
}

// Mechanism is how kgpu's pods get GPUs; empty if the gates allow none. From 1.10 on it is the device plugin, although
// the gate Accelerators still exists. 1.8 and 1.9 have the gate DevicePlugins, but NVIDIA's plugin requires 1.10.
// Source: https://github.com/NVIDIA/k8s-device-plugin, "Prerequisites".
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
