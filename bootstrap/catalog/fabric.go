package catalog

import (
	"fmt"
	"slices"
)

// Fabric is the NVLink fabric between a host's GPUs, if the host has to run services for it.
type Fabric string

// These are the fabrics. CUDA fails with error 802, system not yet initialized, on GPUs whose fabric was not set up.
// Source: Fabric Manager for NVIDIA NVSwitch Systems, "NVSwitch-Based Systems".
const (
	NoFabric       Fabric = ""
	NVSwitches     Fabric = "NVSwitches"        // on the host's PCI bus: HGX A100, H100, H200
	NVLinkSwitches Fabric = "NVLink 5 switches" // behind ConnectX bridges: HGX B200, B300
	NVLinkRack     Fabric = "an NVLink rack"    // in switch trays of their own: GB200, GB300
)

// These are device IDs of GPUs in NVLink 5 systems, which differ from those for PCI slots. Source: the list of cards,
// gpus.txt.
var (
	hgxCards  = []string{"2901", "2909", "290a", "3182"}
	rackCards = []string{"2941", "31a1", "31c2", "31c3"}
)

// FabricOf returns the fabric of a host by the device IDs of its cards, its number of NVSwitches, and its number of
// ConnectX bridges to NVLink 5 switches. A virtual machine that was given only such cards sets up no fabric.
func FabricOf(cards []string, switches, bridges int) Fabric {
	has := func(ids []string) bool {
		return slices.ContainsFunc(cards, func(id string) bool { return slices.Contains(ids, id) })
	}
	switch {
	case has(rackCards):
		return NVLinkRack
	case bridges > 0 && has(hgxCards):
		return NVLinkSwitches
	case switches > 0:
		return NVSwitches
	}
	return NoFabric
}

// FabricPackages are the packages and the unit that a host needs for its fabric.
type FabricPackages struct {
	Driver  []string // these need exactly the driver's version
	Others  []string // these have their own versions; NVIDIA's, which only its CUDA repository has, come first
	Modules []string // kernel modules through which the switches are managed
	Unit    string
	Ends    bool // the unit may end successfully, as it waits to be told about other hosts
}

// FabricPackages names them. The fabric manager's unit starts nvlsm, the subnet manager of NVLink 5 switches, itself, and finds them
// with ibstat of infiniband-diags, over ib_umad. IMEX shares memory between the hosts of a rack, whose switches are managed there.
// Sources: NVIDIA/gpu-driver-container, ubuntu24.04/precompiled/nvidia-driver; packages.ubuntu.com, nvidia-imex-580; Multi-Node
// NVLink Systems, IMEX guide.
func (d Driver) FabricPackages(f Fabric) FabricPackages {
	p := FabricPackages{Driver: []string{d.FabricManager()}, Unit: "nvidia-fabricmanager.service"}
	switch f {
	case NoFabric:
		return FabricPackages{}
	case NVLinkSwitches:
		p.Others, p.Modules = []string{"nvlsm", "infiniband-diags"}, []string{"mlx5_ib", "ib_umad"}
	case NVLinkRack:
		imex := "nvidia-imex"
		if d.Source == FromUbuntu {
			imex = fmt.Sprintf("nvidia-imex-%d", d.Branch)
		}
		return FabricPackages{Driver: []string{imex}, Unit: "nvidia-imex.service", Ends: true}
	}
	return p
}
