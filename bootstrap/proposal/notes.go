package proposal

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// maxNote is how many bytes of a host's text a note has.
const maxNote = 120

// note describes a host in one line.
func (c *candidate) note() string {
	f := c.Facts
	return fmt.Sprintf("%s, %s, %s, %d GiB of memory, %s.", System(f), printable.Short(f.Arch, maxNote), plural.Of(f.CPUs, "CPU"), GiB(f.MemoryKiB), Cards(f))
}

// System is the name of the host's operating system.
func System(f *facts.Host) string {
	if name := printable.Short(f.OS.PrettyName, maxNote); name != "" {
		return name
	}
	return strings.TrimSpace(printable.Short(f.OS.ID+" "+f.OS.VersionID, maxNote))
}

// Cards describes the host's cards that the cluster will use: "2 cards: A100 SXM4 40GB (Ampere)".
func Cards(f *facts.Host) string {
	list := cards(f)
	if len(list) == 0 {
		return "no cards"
	}
	number := map[string]int{}
	var names []string
	for _, card := range list {
		gpu, known := catalog.LookupGPU(card.ID)
		name := gpu.Name
		if known {
			name += " (" + string(gpu.Architecture) + ")"
		}
		if number[name]++; number[name] == 1 {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		for i, name := range names {
			names[i] = fmt.Sprintf("%d of %s", number[name], name)
		}
	}
	return plural.Of(len(list), "card") + ": " + strings.Join(names, ", ")
}

// cards returns the cards that an inventory without driver settings would use.
func cards(f *facts.Host) []facts.Card { return machine.Cards(&inventory.Inventory{}, f) }

// remarks are notes about a host that are no problems.
func (c *candidate) remarks() []string {
	f := c.Facts
	var out []string
	for _, c := range machine.ExcludedCards(&inventory.Inventory{}, f) {
		out = append(out, "C"+c.String()[1:]+".")
	}
	if len(cards(f)) == 0 {
		return out
	}
	switch n := f.NVIDIA; {
	case n.Loaded != "":
		out = append(out, fmt.Sprintf("NVIDIA's driver %s runs here and sees %s.", printable.Short(n.Loaded, maxNote), plural.Of(len(n.GPUs), "card")))
	case n.Nouveau.Loaded:
		out = append(out, "The kernel's driver nouveau has the cards: kgpu puts NVIDIA's in its place, with a reboot if nouveau cannot be unloaded.")
	}
	if f.SecureBoot {
		out = append(out, "Secure Boot is on: kgpu takes a driver whose modules the distribution signed.")
	}
	return out
}

// withoutDuplicates drops hosts that are the same machine as an earlier one, reached by another address.
func withoutDuplicates(seen []Observed) []Observed {
	out := make([]Observed, len(seen))
	first := map[[3]string]string{}
	for i, s := range seen {
		if s.Facts != nil && s.Excluded == nil && s.Facts.BootID != "" {
			// A boot ID is random. Containers share their kernel's, but have different names.
			machine := [3]string{s.Facts.BootID, s.Facts.MachineID, s.Facts.Hostname}
			if other, ok := first[machine]; ok {
				s.Excluded = &reason.Error{ID: reason.HostAddressDuplicate, Host: s.Address, Detail: "this is the same machine as " + other, Advice: "name it once"}
			} else {
				first[machine] = s.Address
			}
		}
		out[i] = s
	}
	return out
}

// GiB rounds KiB to GiB.
func GiB(kib int64) int64 { return (kib + 1<<19) >> 20 }
