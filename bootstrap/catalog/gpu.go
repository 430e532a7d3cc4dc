package catalog

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Architecture is a generation of NVIDIA's GPUs.
type Architecture string

// These are the architectures, oldest first.
const (
	Fermi     Architecture = "Fermi"
	Kepler    Architecture = "Kepler"
	Maxwell   Architecture = "Maxwell"
	Pascal    Architecture = "Pascal"
	Volta     Architecture = "Volta"
	Turing    Architecture = "Turing"
	Ampere    Architecture = "Ampere"
	Ada       Architecture = "Ada Lovelace"
	Hopper    Architecture = "Hopper"
	Blackwell Architecture = "Blackwell"
	Rubin     Architecture = "Rubin"
)

// generations are the architectures, oldest first.
var generations = []Architecture{Fermi, Kepler, Maxwell, Pascal, Volta, Turing, Ampere, Ada, Hopper, Blackwell, Rubin}

// Before reports whether an architecture is older than another.
func (a Architecture) Before(b Architecture) bool {
	return slices.Index(generations, a) < slices.Index(generations, b)
}

// architectures are by the first letters of their chips' names.
var architectures = map[string]Architecture{
	"GF": Fermi, "GK": Kepler, "GM": Maxwell, "GP": Pascal, "GV": Volta, "TU": Turing,
	"GA": Ampere, "AD": Ada, "GH": Hopper, "GB": Blackwell, "GR": Rubin,
}

// GPU is a model of GPU, by its PCI device ID.
type GPU struct {
	ID           string // four hexadecimal digits, lower case
	Chip         string // such as GA100; empty if it is not in the list
	Name         string // such as A100 SXM4 40GB; that of the chip if the list has none
	Architecture Architecture
}

//go:embed gpus.txt
var gpuList string

var gpus = sync.OnceValue(func() map[string]GPU {
	all := map[string]GPU{}
	for line := range strings.Lines(gpuList) {
		if line[0] == '#' {
			continue
		}
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		chip, name, _ := strings.Cut(rest, " ")
		all[id] = GPU{ID: id, Chip: chip, Name: cmp.Or(name, chip), Architecture: architectures[chip[:2]]}
	}
	return all
})

// firstTuring is the device ID from which on all GPUs are Turing or newer.
const firstTuring = 0x1e00

// LookupGPU returns the GPU with this device ID. A newer one than those in the list counts as Blackwell, so that it
// gets the open modules. ok is false for other unknown ones.
func LookupGPU(id string) (gpu GPU, ok bool) {
	if gpu, ok := gpus()[id]; ok {
		return gpu, true
	}
	n, err := strconv.ParseUint(id, 16, 16)
	return GPU{ID: id, Name: fmt.Sprintf("unknown card %s", id), Architecture: Blackwell}, err == nil && n >= firstTuring
}

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
