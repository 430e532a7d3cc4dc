package catalog

import (
	"slices"
	"testing"
)

// TestFabricOf: the fabric follows from the host's cards and from the switches and bridges on its PCI bus.
func TestFabricOf(t *testing.T) {
	for name, c := range map[string]struct {
		cards             []string
		switches, bridges int
		want              Fabric
	}{
		"HGX H100":                               {[]string{"2330"}, 4, 0, NVSwitches},
		"HGX B200":                               {[]string{"2901", "2901"}, 0, 4, NVLinkSwitches},
		"HGX B200 beside another card":           {[]string{"1eb8", "2901"}, 0, 4, NVLinkSwitches},
		"HGX B300":                               {[]string{"3182"}, 0, 2, NVLinkSwitches},
		"B200 in a virtual machine":              {[]string{"2901"}, 0, 0, NoFabric},
		"RTX PRO 6000 Blackwell beside a bridge": {[]string{"2bb1"}, 0, 4, NoFabric},
		"GB200":                                  {[]string{"2941"}, 0, 0, NVLinkRack},
		"GB300":                                  {[]string{"31c2"}, 0, 4, NVLinkRack},
		"RTX 5090":                               {[]string{"2b85"}, 0, 0, NoFabric},
		"no card":                                {nil, 0, 0, NoFabric},
	} {
		if got := FabricOf(c.cards, c.switches, c.bridges); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFabricCards: the device IDs that are told apart belong to cards with these names.
func TestFabricCards(t *testing.T) {
	for _, id := range slices.Concat(hgxCards, rackCards) {
		if gpu, ok := gpus()[id]; !ok || gpu.Architecture != Blackwell || gpu.Chip != "GB100" && gpu.Chip != "GB110" {
			t.Errorf("%s is %+v", id, gpu)
		}
	}
}
