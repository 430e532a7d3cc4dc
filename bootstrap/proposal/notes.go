package proposal

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// longest is what a note takes over of what a host says.
const longest = 120

// note is what a host is, in one line.
func (c *candidate) note() string {
	f := c.Facts
	return fmt.Sprintf("%s, %s, %s, %d GiB of memory, %s.", System(f), printable.Short(f.Arch, longest), plural.Of(f.CPUs, "CPU"), GiB(f.MemoryKiB), Cards(f))
}

// System is the host's operating system by its name.
func System(f *facts.Host) string {
	if name := printable.Short(f.OS.PrettyName, longest); name != "" {
		return name
	}
	return strings.TrimSpace(printable.Short(f.OS.ID+" "+f.OS.VersionID, longest))
}

// Cards names the host's cards that the cluster will have: "2 cards: A100 SXM4 40GB (Ampere)".
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

// cards are those that the cluster will have by an inventory that says nothing of drivers.
func cards(f *facts.Host) []facts.Card { return machine.Cards(&inventory.Inventory{}, f) }

// remarks are what is no problem and good to know.
func (c *candidate) remarks() []string {
	f := c.Facts
	var out []string
	for _, c := range machine.NotCards(&inventory.Inventory{}, f) {
		out = append(out, "C"+c.String()[1:]+".")
	}
	if len(cards(f)) == 0 {
		return out
	}
	switch n := f.NVIDIA; {
	case n.Loaded != "":
		out = append(out, fmt.Sprintf("NVIDIA's driver %s runs here and sees %s.", printable.Short(n.Loaded, longest), plural.Of(len(n.Seen), "card")))
	case n.Nouveau.Loaded:
		out = append(out, "The kernel's driver nouveau has the cards: kgpu puts NVIDIA's in its place, with a reboot if nouveau cannot be unloaded.")
	}
	if f.SecureBoot {
		out = append(out, "Secure Boot is on: kgpu takes a driver whose modules the distribution signed.")
	}
	return out
}

// unlike leaves a machine out that is there already, under another address.
func unlike(seen []Seen) []Seen {
	out := make([]Seen, len(seen))
	first := map[[3]string]string{}
	for i, s := range seen {
		if s.Facts != nil && s.Left == nil && s.Facts.BootID != "" {
			// A boot's ID is random; containers on one kernel may share it, and then have names of their own.
			machine := [3]string{s.Facts.BootID, s.Facts.MachineID, s.Facts.Hostname}
			if other, ok := first[machine]; ok {
				s.Left = &reason.Error{ID: reason.HostAddressDuplicate, Host: s.Address, Detail: "this is the same machine as " + other, Advice: "name it once"}
			} else {
				first[machine] = s.Address
			}
		}
		out[i] = s
	}
	return out
}

// GiB is kibibytes as the next whole gibibytes.
func GiB(kib int64) int64 { return (kib + 1<<19) >> 20 }
