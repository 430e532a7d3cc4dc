package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// ExcludedCard is a card that Kubernetes does not get.
type ExcludedCard struct {
	facts.Card
	Why string // the reason, for people
}

// Cards returns the host's cards that Kubernetes gets as GPUs. ExcludedCards returns the others.
func Cards(inv *inventory.Inventory, f *facts.Host) []facts.Card {
	cards, _ := splitCards(inv.GPU.Driver, f)
	return cards
}

// ExcludedCards returns the cards that Kubernetes does not get: bound to a kernel driver that something else needs,
// unknown while other cards are known, or too old for the driver that runs or was chosen.
func ExcludedCards(inv *inventory.Inventory, f *facts.Host) []ExcludedCard {
	_, excluded := splitCards(inv.GPU.Driver, f)
	return excluded
}

// displayDrivers are the kernel drivers from which NVIDIA's driver takes over a card. A card with any other one
// (vfio-pci, pci-stub, pciback) was reserved by somebody for virtual machines or other programs.
var displayDrivers = []string{"", "nvidia", "nouveau", "nvidiafb", "rivafb"}

// availableCards returns the cards that NVIDIA's driver may take over.
func availableCards(f *facts.Host) []facts.Card {
	return slices.DeleteFunc(slices.Clone(f.NVIDIA.Cards), func(c facts.Card) bool { return !slices.Contains(displayDrivers, c.Driver) })
}

// splitCards divides the host's cards into those that Kubernetes gets and those that it does not get.
func splitCards(want inventory.Driver, f *facts.Host) (cards []facts.Card, excluded []ExcludedCard) {
	exclude := func(cards []facts.Card, format string, args ...any) {
		for _, c := range cards {
			excluded = append(excluded, ExcludedCard{c, fmt.Sprintf(format, args...)})
		}
	}
	cards = availableCards(f)
	for _, c := range f.NVIDIA.Cards {
		if !slices.Contains(cards, c) {
			exclude([]facts.Card{c}, "the kernel driver %s has it", printable.Short(c.Driver, 40))
		}
	}
	known, unknown := partition(cards, func(c facts.Card) bool { _, ok := catalog.LookupGPU(c.ID); return ok || smiLists(f, c) })
	if len(known) == 0 {
		return unknown, excluded // all cards are unknown: ChooseDriver refuses the host
	}
	for _, c := range unknown {
		exclude([]facts.Card{c}, "it is unknown (PCI ID 10de:%s)", printable.Short(c.ID, 40))
	}
	cards = known
	if driverAnswers(f) && len(f.NVIDIA.GPUs) > 0 && (want.Source == catalog.NoDriver || satisfies(want, f)) {
		served, older := partition(cards, func(c facts.Card) bool { return smiLists(f, c) || loadedDriverRuns(f, c) || !olderThanListed(f, c) })
		exclude(older, "driver %s, which runs, is not for %s%s", f.NVIDIA.Loaded, cardNames(models(older)), driverAdvice(want, f, cards, older))
		cards = served
		if !slices.ContainsFunc(cards, func(c facts.Card) bool { return !smiLists(f, c) && !loadedDriverRuns(f, c) }) {
			return cards, excluded
		}
	}
	kept, d := chooseServed(want, f, cards)
	_, others := partition(cards, func(c facts.Card) bool { return slices.Contains(kept, c) })
	exclude(others, "driver %s for %s is not for %s%s", d, cardNames(models(kept)), cardNames(models(others)), driverAdvice(want, f, cards, others))
	return kept, excluded
}

// chooseServed returns the cards to serve and the driver for them. All cards are served if a driver that still gets fixes
// runs them all. Otherwise the oldest architectures are dropped until such a driver exists. Compute-only cards are
// dropped only if no driver at all runs all cards.
func chooseServed(want inventory.Driver, f *facts.Host, cards []facts.Card) ([]facts.Card, catalog.Driver) {
	if want.Source == catalog.NoDriver {
		return cards, catalog.Driver{}
	}
	all, possible := driverFor(want, f, cards)
	if branch, _ := catalog.LookupDriverBranch(all.Branch); possible && !branch.Ended() {
		return cards, all
	}
	ages := models(cards)
	slices.SortFunc(ages, func(a, b catalog.GPU) int { return olderFirst(a.Architecture, b.Architecture) })
	for _, age := range ages {
		newer, older := partition(cards, func(c facts.Card) bool { return !architecture(c).Before(age.Architecture) })
		d, ok := driverFor(want, f, newer)
		branch, _ := catalog.LookupDriverBranch(d.Branch)
		if !ok || possible && (branch.Ended() || slices.ContainsFunc(older, computeOnly)) {
			continue
		}
		return newer, d
	}
	if possible || want == (inventory.Driver{}) {
		return cards, all
	}
	// The requested driver does not run the newest cards: serve those that it runs.
	some, _ := partition(cards, func(c facts.Card) bool { _, ok := driverFor(want, f, []facts.Card{c}); return ok })
	if d, ok := driverFor(want, f, some); ok && len(some) > 0 {
		return some, d
	}
	return cards, all
}

// driverAdvice advises, as the end of a sentence, which driver would run all of the cards, or at least those in out. It is
// empty if there is no such driver.
func driverAdvice(want inventory.Driver, f *facts.Host, cards, out []facts.Card) string {
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

// driverFor returns the best driver for the cards; false if there is none.
func driverFor(want inventory.Driver, f *facts.Host, cards []facts.Card) (catalog.Driver, bool) {
	return bestDriver(want, f.OS.ID+" "+f.OS.VersionID, architectures(models(cards)), FabricOf(f) != catalog.NoFabric, f.SecureBoot)
}

// partition separates the cards for which so is true from the others.
func partition(cards []facts.Card, so func(facts.Card) bool) (yes, no []facts.Card) {
	for _, c := range cards {
		if so(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

// models returns the known GPU models among the cards, each once.
func models(cards []facts.Card) []catalog.GPU {
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

// computeOnly reports whether a card is an old compute-only model, sold as Tesla or GRID.
func computeOnly(c facts.Card) bool {
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

// smiLists reports whether nvidia-smi lists the card.
func smiLists(f *facts.Host, c facts.Card) bool {
	return slices.ContainsFunc(f.NVIDIA.GPUs, func(g facts.GPU) bool { return g.Address == c.Address })
}

// ListedCards is how many of the cards that Kubernetes shall have nvidia-smi lists.
func ListedCards(inv *inventory.Inventory, f *facts.Host) int {
	n := len(f.NVIDIA.GPUs)
	for _, c := range ExcludedCards(inv, f) {
		if smiLists(f, c.Card) {
			n--
		}
	}
	return n
}

// olderThanListed reports whether the card is older than one that nvidia-smi lists.
func olderThanListed(f *facts.Host, c facts.Card) bool {
	return slices.ContainsFunc(f.NVIDIA.Cards, func(other facts.Card) bool {
		return smiLists(f, other) && architecture(c).Before(architecture(other))
	})
}

// loadedDriverRuns reports whether the loaded driver supports the card's architecture. It is true for a driver branch that
// kgpu does not know.
func loadedDriverRuns(f *facts.Host, c facts.Card) bool {
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

// driverAnswers reports whether a driver is loaded that matches its library, and nvidia-smi succeeds.
func driverAnswers(f *facts.Host) bool {
	n := f.NVIDIA
	return n.Loaded != "" && n.Loaded == n.Library && n.SMI == 0
}

// UnloadsNouveau reports whether nouveau has to be unloaded. It may stay if only cards that Kubernetes does not get use
// it.
func UnloadsNouveau(inv *inventory.Inventory, f *facts.Host) bool {
	if slices.ContainsFunc(Cards(inv, f), func(c facts.Card) bool { return c.Driver == "nouveau" }) {
		return true
	}
	return !slices.ContainsFunc(ExcludedCards(inv, f), func(c ExcludedCard) bool { return c.Driver == "nouveau" })
}

// String is the line for people: "card 0000:17:00.0 (GeForce GT 710) is left out: …".
func (l ExcludedCard) String() string {
	name := ""
	if gpu, ok := catalog.LookupGPU(l.ID); ok {
		name = " (" + cmp.Or(gpu.Name, gpu.Chip) + ")"
	}
	return fmt.Sprintf("card %s%s is left out: %s", printable.Short(l.Address, 40), name, l.Why)
}

// FabricOf tells which NVLink fabric of the host's cards the host itself has to run services for.
func FabricOf(f *facts.Host) catalog.Fabric {
	var ids []string
	for _, c := range availableCards(f) {
		ids = append(ids, c.ID)
	}
	return catalog.FabricOf(ids, f.NVIDIA.Switches, f.NVIDIA.Bridges)
}
