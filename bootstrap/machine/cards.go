package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/inventory"
)

// LeftOut is a card that Kubernetes does not get, and why.
type LeftOut struct {
	facts.Card
	Why string // for people
}

// Cards are the host's cards that Kubernetes shall have. A card that it cannot have costs nothing but that card: see NotCards.
func Cards(inv *inventory.Inventory, f *facts.Host) []facts.Card {
	cards, _ := sortCards(inv.GPU.Driver, f)
	return cards
}

// NotCards are the host's other cards: bound to a kernel driver that others need there, unknown beside known ones, or older than what
// the driver that runs, or that is chosen, is for.
func NotCards(inv *inventory.Inventory, f *facts.Host) []LeftOut {
	_, left := sortCards(inv.GPU.Driver, f)
	return left
}

// displayDrivers are the kernel drivers that NVIDIA's takes a card from. Any other one, vfio-pci and its variants, pci-stub, pciback,
// somebody has put there for virtual machines or programs of theirs.
var displayDrivers = []string{"", "nvidia", "nouveau", "nvidiafb", "rivafb"}

// unbound are the cards that nothing else but a display has.
func unbound(f *facts.Host) []facts.Card {
	return slices.DeleteFunc(slices.Clone(f.NVIDIA.Cards), func(c facts.Card) bool { return !slices.Contains(displayDrivers, c.Driver) })
}

func sortCards(want inventory.Driver, f *facts.Host) (cards []facts.Card, left []LeftOut) {
	leave := func(cards []facts.Card, format string, args ...any) {
		for _, c := range cards {
			left = append(left, LeftOut{c, fmt.Sprintf(format, args...)})
		}
	}
	cards = unbound(f)
	for _, c := range f.NVIDIA.Cards {
		if !slices.Contains(cards, c) {
			leave([]facts.Card{c}, "the kernel driver %s has it", printable.Short(c.Driver, 40))
		}
	}
	known, unknown := divided(cards, func(c facts.Card) bool { _, ok := catalog.LookupGPU(c.ID); return ok || sees(f, c) })
	if len(known) == 0 {
		return unknown, left // all that there is: ChooseDriver refuses it
	}
	for _, c := range unknown {
		leave([]facts.Card{c}, "it is unknown (PCI ID 10de:%s)", printable.Short(c.ID, 40))
	}
	cards = known
	if answers(f) && len(f.NVIDIA.Seen) > 0 && (want.Source == catalog.NoDriver || satisfies(want, f)) {
		served, older := divided(cards, func(c facts.Card) bool { return sees(f, c) || loadedRuns(f, c) || !beforeSeen(f, c) })
		leave(older, "driver %s, which runs, is not for %s%s", f.NVIDIA.Loaded, cardNames(kinds(older)), another(want, f, cards, older))
		cards = served
		if !slices.ContainsFunc(cards, func(c facts.Card) bool { return !sees(f, c) && !loadedRuns(f, c) }) {
			return cards, left
		}
	}
	kept, d := served(want, f, cards)
	_, others := divided(cards, func(c facts.Card) bool { return slices.Contains(kept, c) })
	leave(others, "driver %s for %s is not for %s%s", d, cardNames(kinds(kept)), cardNames(kinds(others)), another(want, f, cards, others))
	return kept, left
}

// served are all cards, if there is a driver for them that gets fixes. Otherwise the oldest go first until there is one;
// cards that were made to compute go for that only if there is no driver at all for all of them.
func served(want inventory.Driver, f *facts.Host, cards []facts.Card) ([]facts.Card, catalog.Driver) {
	if want.Source == catalog.NoDriver {
		return cards, catalog.Driver{}
	}
	all, possible := driverFor(want, f, cards)
	if branch, _ := catalog.LookupDriverBranch(all.Branch); possible && !branch.Ended() {
		return cards, all
	}
	ages := kinds(cards)
	slices.SortFunc(ages, func(a, b catalog.GPU) int { return olderFirst(a.Architecture, b.Architecture) })
	for _, age := range ages {
		newer, older := divided(cards, func(c facts.Card) bool { return !architecture(c).Before(age.Architecture) })
		d, ok := driverFor(want, f, newer)
		branch, _ := catalog.LookupDriverBranch(d.Branch)
		if !ok || possible && (branch.Ended() || slices.ContainsFunc(older, computes)) {
			continue
		}
		return newer, d
	}
	if possible || want == (inventory.Driver{}) {
		return cards, all
	}
	// What is asked for is not for the newest: it is for those that it runs.
	some, _ := divided(cards, func(c facts.Card) bool { _, ok := driverFor(want, f, []facts.Card{c}); return ok })
	if d, ok := driverFor(want, f, some); ok && len(some) > 0 {
		return some, d
	}
	return cards, all
}

// another is the advice how to have all of the cards, or those that are left out in the place of the others, as the end of a
// sentence; empty: there is no such driver.
func another(want inventory.Driver, f *facts.Host, cards, out []facts.Card) string {
	if len(out) == 0 || want.Source == catalog.NoDriver {
		return ""
	}
	want.Branch, want.Flavour = 0, ""
	d, ok := driverFor(want, f, cards)
	takes := "takes one for all of them"
	if !ok {
		d, ok = driverFor(want, f, out)
		takes = "takes one for it instead"
	}
	if !ok {
		return ""
	}
	return fmt.Sprintf("; `gpu: {driver: {branch: %d, flavour: %s}}` %s", d.Branch, d.Flavour, takes)
}

// driverFor is the best driver for the cards.
func driverFor(want inventory.Driver, f *facts.Host, cards []facts.Card) (catalog.Driver, bool) {
	return best(want, f.OS.ID+" "+f.OS.VersionID, architectures(kinds(cards)), FabricOf(f) != catalog.NoFabric, f.SecureBoot)
}

// divided are the cards that are so, and the others.
func divided(cards []facts.Card, so func(facts.Card) bool) (yes, no []facts.Card) {
	for _, c := range cards {
		if so(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

// kinds are the known ones of the cards, each kind once.
func kinds(cards []facts.Card) []catalog.GPU {
	var out []catalog.GPU
	for _, c := range cards {
		if gpu, ok := catalog.LookupGPU(c.ID); ok && !slices.Contains(out, gpu) {
			out = append(out, gpu)
		}
	}
	return out
}

func architectures(kinds []catalog.GPU) []catalog.Architecture {
	var out []catalog.Architecture
	for _, gpu := range kinds {
		out = append(out, gpu.Architecture)
	}
	return out
}

// computes reports whether a card of the time in which there were other names for displays was made to compute only.
func computes(c facts.Card) bool {
	gpu, _ := catalog.LookupGPU(c.ID)
	return strings.HasPrefix(gpu.Name, "Tesla ") || strings.HasPrefix(gpu.Name, "GRID ")
}

func architecture(c facts.Card) catalog.Architecture {
	gpu, _ := catalog.LookupGPU(c.ID)
	return gpu.Architecture
}

func olderFirst(a, b catalog.Architecture) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// sees reports whether nvidia-smi lists the card.
func sees(f *facts.Host, c facts.Card) bool {
	return slices.ContainsFunc(f.NVIDIA.Seen, func(g facts.GPU) bool { return g.Address == c.Address })
}

// Listed is how many of the cards that Kubernetes shall have nvidia-smi lists.
func Listed(inv *inventory.Inventory, f *facts.Host) int {
	n := len(f.NVIDIA.Seen)
	for _, c := range NotCards(inv, f) {
		if sees(f, c.Card) {
			n--
		}
	}
	return n
}

// beforeSeen reports whether the card is older than one that nvidia-smi lists.
func beforeSeen(f *facts.Host, c facts.Card) bool {
	return slices.ContainsFunc(f.NVIDIA.Cards, func(other facts.Card) bool {
		return sees(f, other) && architecture(c).Before(architecture(other))
	})
}

// loadedRuns reports whether the driver that is loaded is for such a card, as far as kgpu knows the driver.
func loadedRuns(f *facts.Host, c facts.Card) bool {
	branch, known := catalog.LookupDriverBranch(BranchOf(f.NVIDIA.Loaded))
	flavours := branch.Runs[architecture(c)]
	if !known {
		return true
	}
	for name := range f.Packages {
		if p, _ := InstalledDriver(f, name); p.Flavour != "" && p.Branch == branch.Number {
			return slices.Contains(flavours, p.Flavour)
		}
	}
	return len(flavours) > 0
}

// answers reports whether a driver is loaded that can be asked.
func answers(f *facts.Host) bool {
	n := f.NVIDIA
	return n.Loaded != "" && n.Loaded == n.Library && n.SMI == 0
}

// ByNouveau reports whether nouveau has to go from the cards: it may stay with those only that are left out.
func ByNouveau(inv *inventory.Inventory, f *facts.Host) bool {
	if slices.ContainsFunc(Cards(inv, f), func(c facts.Card) bool { return c.Driver == "nouveau" }) {
		return true
	}
	return !slices.ContainsFunc(NotCards(inv, f), func(c LeftOut) bool { return c.Driver == "nouveau" })
}

// String is "card 0000:17:00.0 (GeForce GT 710) is left out: …".
func (l LeftOut) String() string {
	name := ""
	if gpu, ok := catalog.LookupGPU(l.ID); ok {
		name = " (" + cmp.Or(gpu.Name, gpu.Chip) + ")"
	}
	return fmt.Sprintf("card %s%s is left out: %s", printable.Short(l.Address, 40), name, l.Why)
}

// FabricOf tells what connects the cards of a host, as far as the host runs something for it.
func FabricOf(f *facts.Host) catalog.Fabric {
	var ids []string
	for _, c := range unbound(f) {
		ids = append(ids, c.ID)
	}
	return catalog.FabricOf(ids, f.NVIDIA.Switches, f.NVIDIA.Bridges)
}
