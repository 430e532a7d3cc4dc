package catalog

import (
	"fmt"
	"slices"
)

// Fabric is what connects the cards of a host by NVLink, as far as the host itself runs something for it.
type Fabric string

// The fabrics. CUDA fails with error 802, system not yet initialized, on cards whose fabric nobody has set up.
// Source: Fabric Manager for NVIDIA NVSwitch Systems, "NVSwitch-Based Systems".
const (
	NoFabric       Fabric = ""
	NVSwitches     Fabric = "NVSwitches"        // on the host's PCI bus: HGX A100, H100, H200
	NVLinkSwitches Fabric = "NVLink 5 switches" // behind ConnectX bridges: HGX B200, B300
	NVLinkRack     Fabric = "an NVLink rack"    // in switch trays of their own: GB200, GB300
)

// Device IDs of cards of NVLink 5 systems, of which there are others for PCI slots. Source: the list of cards, gpus.txt.
var (
	hgxCards  = []string{"2901", "2909", "290a", "3182"}
	rackCards = []string{"2941", "31a1", "31c2", "31c3"}
)

// FabricOf tells the fabric of a host by its cards' device IDs, how many NVSwitches its PCI bus has, and how many ConnectX bridges
// to NVLink 5 switches. A virtual machine that was given such cards alone has no fabric of its own to set up.
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

// FabricPackages are what a host runs for its fabric.
type FabricPackages struct {
	Driver  []string // in exactly the driver's version
	Others  []string // with versions of their own; NVIDIA's own, which only its CUDA repository has, first
	Modules []string // of the kernel, over which the switches are reached
	Unit    string
	Ends    bool // the unit may end by itself: it has nothing to do until it is told of other hosts
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
