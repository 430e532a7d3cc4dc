package catalog

import (
	"cmp"
	_ "embed"
	"fmt"
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
