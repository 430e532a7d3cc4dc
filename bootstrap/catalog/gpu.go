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

// Architecture is a generation of NVIDIA's graphics processors.
type Architecture string

// The architectures, oldest first.
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

// Before reports whether an architecture is older than another one.
func (a Architecture) Before(b Architecture) bool {
	return slices.Index(generations, a) < slices.Index(generations, b)
}

var architectures = map[string]Architecture{
	"GF": Fermi, "GK": Kepler, "GM": Maxwell, "GP": Pascal, "GV": Volta, "TU": Turing,
	"GA": Ampere, "AD": Ada, "GH": Hopper, "GB": Blackwell, "GR": Rubin,
}

// GPU is a graphics processor by its PCI device ID.
type GPU struct {
	ID           string // four hexadecimal digits, lower case
	Chip         string // GA100; empty: the list does not have it
	Name         string // A100 SXM4 40GB; the chip's where the list has no name
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

// firstTuring is the device ID from which on every graphics processor is Turing or newer.
const firstTuring = 0x1e00

// LookupGPU returns the processor with this device ID. One that is not in the list counts as Blackwell when its ID is
// beyond all older ones, so that a card that came out last week gets the open modules; ok is false for others.
func LookupGPU(id string) (gpu GPU, ok bool) {
	if gpu, ok := gpus()[id]; ok {
		return gpu, true
	}
	n, err := strconv.ParseUint(id, 16, 16)
	return GPU{ID: id, Name: fmt.Sprintf("unknown card %s", id), Architecture: Blackwell}, err == nil && n >= firstTuring
}

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
