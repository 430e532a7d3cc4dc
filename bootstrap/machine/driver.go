package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// DriverChoice is the driver chosen for a host's cards.
type DriverChoice struct {
	catalog.Driver
	Why  string // the reason for the choice, for people
	Keep bool   // the installed driver works and is kept

	// Later means that another driver, or the reboot that its library asks for, waits until the pods that hold the cards have ended.
	Later bool

	Replaces []string // packages of another driver, which are removed first
}

// Refused is the error that a host cannot have the driver, toolkit or framework that it needs.
type Refused struct {
	Kind   Refusal
	Detail string
	Advice string // empty for the advice of the reason
}

// Refusal says why a host was refused.
type Refusal string

// The refusals.
const (
	NoSuchDriver   Refusal = "no driver"  // no available driver runs the cards
	Impossible     Refusal = "impossible" // the inventory's driver does not run the cards
	Unsigned       Refusal = "unsigned"   // Secure Boot is on, and no source has signed modules
	DriverMissing  Refusal = "missing"    // the inventory says that a driver is installed, and it is not
	DriverForeign  Refusal = "foreign"    // another driver was installed by NVIDIA's .run installer
	NoModules      Refusal = "modules"    // there are no modules for the running kernel, and the host cannot build them
	NoFabric       Refusal = "fabric"     // the driver's source lacks the packages for the cards' fabric
	CUDAImpossible Refusal = "cuda"       // the inventory's CUDA toolkit does not run on the host
	NoNotebook     Refusal = "notebook"   // no notebook framework, or not the inventory's, computes on the cards
)

func (r *Refused) Error() string { return r.Detail }

// ChooseDriver decides which driver a host with cards gets. The error is a *Refused.
func ChooseDriver(inv *inventory.Inventory, f *facts.Host) (DriverChoice, error) {
	cards, err := knownCards(inv, f)
	if err != nil {
		return DriverChoice{}, err
	}
	architectures, works := architectures(cards), DriverWorks(inv, f)
	want := inv.GPU.Driver
	if want.Source == catalog.NoDriver {
		if !works {
			return DriverChoice{}, &Refused{Kind: DriverMissing, Detail: "the inventory says that the driver is there, but " + DriverTrouble(inv, f)}
		}
		return DriverChoice{Driver: catalog.Driver{Source: catalog.NoDriver, Branch: BranchOf(f.NVIDIA.Loaded)}, Why: "the inventory says so", Keep: true}, nil
	}
	if works && want == (inventory.Driver{}) && !unheldDriver(f, cards, architectures) {
		return DriverChoice{Driver: catalog.Driver{Branch: BranchOf(f.NVIDIA.Loaded)}, Why: "it is there and sees all cards", Keep: true}, nil
	}
	c, err := pickDriver(want, f, cards, architectures)
	if err != nil && works && satisfies(want, f) {
		return DriverChoice{Driver: catalog.Driver{Branch: BranchOf(f.NVIDIA.Loaded)}, Why: "it is there and sees all cards", Keep: true}, nil
	}
	if err != nil {
		return DriverChoice{}, err
	}
	c.Replaces = otherDriver(f, c.Driver)
	if (f.NVIDIA.Runfile || len(c.Replaces) > 0) && satisfies(want, f) && (works || fitsButFails(f, architectures)) {
		return DriverChoice{Driver: catalog.Driver{Branch: BranchOf(f.NVIDIA.Loaded)}, Why: "it is there and runs such cards", Keep: true}, nil
	}
	if f.NVIDIA.Runfile {
		return DriverChoice{}, &Refused{Kind: DriverForeign, Detail: foreignDriver(inv, f, c.Driver)}
	}
	if refused := onForeignKernel(f); refused != nil {
		return DriverChoice{}, refused
	}
	if len(f.Busy) > 0 && (len(c.Replaces) > 0 || StaleModule(f)) {
		return DriverChoice{Driver: catalog.Driver{Branch: BranchOf(f.NVIDIA.Loaded)}, Why: "pods with cards run there", Keep: true, Later: true}, nil
	}
	return c, nil
}

// StaleModule reports whether a module of another version than the driver's library is loaded: it is unloaded, or the host reboots.
func StaleModule(f *facts.Host) bool {
	return f.NVIDIA.Loaded != "" && f.NVIDIA.Loaded != f.NVIDIA.Library
}

// unheldDriver reports whether kgpu installed the running driver but was interrupted before it held its packages, as
// when the host rebooted meanwhile. Once DriverModules exists, a missing hold is the owner's doing.
func unheldDriver(f *facts.Host, cards []catalog.GPU, architectures []catalog.Architecture) bool {
	_, begun := f.Files[DriverUpgrades]
	if _, over := f.Files[DriverModules]; !begun || over {
		return false
	}
	c, err := pickDriver(inventory.Driver{}, f, cards, architectures)
	if err != nil || c.Branch != BranchOf(f.NVIDIA.Loaded) || len(otherDriver(f, c.Driver)) > 0 {
		return false
	}
	m, packages := Machine{Facts: f}, c.Packages(f.OS.ID, f.Kernel).Driver
	return len(m.Missing(packages)) == 0 && len(m.Unheld(packages)) > 0
}

// knownCards returns the GPU models of the cards that Kubernetes gets. An unknown card is an error unless nvidia-smi
// lists it.
func knownCards(inv *inventory.Inventory, f *facts.Host) ([]catalog.GPU, error) {
	cards := Cards(inv, f)
	for _, card := range cards {
		if _, ok := catalog.LookupGPU(card.ID); !ok && !smiLists(f, card) {
			return nil, &Refused{Kind: NoSuchDriver, Detail: fmt.Sprintf("the card at %s is unknown (PCI ID 10de:%s)", card.Address, card.ID)}
		}
	}
	return models(cards), nil
}

// pickDriver selects the driver to install. Under Secure Boot only drivers with signed modules count.
func pickDriver(want inventory.Driver, f *facts.Host, cards []catalog.GPU, architectures []catalog.Architecture) (DriverChoice, error) {
	release := f.OS.ID + " " + f.OS.VersionID
	names := cardNames(cards)
	switches := FabricOf(f) != catalog.NoFabric
	d, ok := bestDriver(want, release, architectures, switches, f.SecureBoot)
	if ok {
		d.Compiled = needsDKMS(f, d) || d.Prebuilt() && foreignKernel(f) && !f.SecureBoot
		return DriverChoice{Driver: d, Why: whyDriver(want, f, d, names)}, nil
	}
	if d, ok := bestDriver(want, release, architectures, switches, false); ok {
		return DriverChoice{}, &Refused{Kind: Unsigned, Detail: fmt.Sprintf("Secure Boot is on, and the modules of driver %s for %s are not signed", d, names)}
	}
	if d, ok := bestDriver(want, release, architectures, false, f.SecureBoot); ok && switches {
		return DriverChoice{}, lacksFabric(f, d, names)
	}
	if want != (inventory.Driver{}) {
		return DriverChoice{}, &Refused{Kind: Impossible, Detail: fmt.Sprintf("%s: gpu.driver (%s) cannot be had or does not run it on %s%s", names, describeRequest(want), release, whyImpossible(want, release, architectures))}
	}
	return DriverChoice{}, &Refused{Kind: NoSuchDriver, Detail: fmt.Sprintf("no driver for %s is offered for %s", names, release)}
}

// whyImpossible explains why the inventory's driver cannot be had, and what can. It is empty if the source has nothing for
// the cards.
func whyImpossible(want inventory.Driver, release string, architectures []catalog.Architecture) string {
	branch, _ := catalog.LookupDriverBranch(want.Branch)
	flavours := branch.Flavours(architectures)
	next, succeeded := catalog.DriverSuccessor(want.Source, want.Branch)
	offer := catalog.DriverOffer(want.Source, release)
	switch {
	case succeeded:
		return fmt.Sprintf(": there it has become %d, ask for branch %d", next, next)
	case want.Branch != 0 && len(flavours) > 0 && want.Flavour != "" && !slices.Contains(flavours, want.Flavour):
		return fmt.Sprintf(": %d has %s modules only for such cards", want.Branch, flavours[0])
	case want.Branch != 0 && len(offer) > 0 && !slices.Contains(offer, want.Branch):
		return fmt.Sprintf(": there are %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(offer), " ", ", "), "[]"))
	}
	return ""
}

// bestDriver returns the first driver, in the order of the sources and of their branches, that runs all architectures.
// switches requires a source with the fabric manager, signed requires prebuilt modules.
func bestDriver(want inventory.Driver, release string, architectures []catalog.Architecture, switches, signed bool) (catalog.Driver, bool) {
	sources := catalog.DriverSources(release)
	if want.Source != "" {
		sources = []catalog.DriverSource{want.Source}
	}
	for _, source := range sources {
		if switches && !catalog.HasFabricManager(source) {
			continue
		}
		for _, number := range catalog.DriverOffer(source, release) {
			branch, _ := catalog.LookupDriverBranch(number)
			flavours := branch.Flavours(architectures)
			if want.Branch != 0 && want.Branch != number || len(flavours) == 0 || want.Flavour != "" && !slices.Contains(flavours, want.Flavour) {
				continue
			}
			if d := (catalog.Driver{Source: source, Branch: number, Flavour: cmp.Or(want.Flavour, flavours[0])}); d.Prebuilt() || !signed {
				return d, true
			}
		}
	}
	return catalog.Driver{}, false
}

// whyDriver explains the choice of a driver: its cards, the reason, and for how long it gets fixes.
func whyDriver(want inventory.Driver, f *facts.Host, d catalog.Driver, names string) string {
	branch, _ := catalog.LookupDriverBranch(d.Branch)
	out := []string{names}
	switch {
	case want != (inventory.Driver{}):
		out = append(out, "the inventory asks for "+describeRequest(want))
	case f.SecureBoot:
		out = append(out, "Secure Boot wants signed modules")
	case d.Prebuilt() && (len(f.Ways) == 0 || f.Ways[0].Kernel != ""):
		out = append(out, "modules come built and signed")
	case foreignKernel(f):
		out = append(out, fmt.Sprintf("DKMS builds the modules, for kernel %s is not one of %s's", f.Kernel, f.OS.ID))
	}
	return strings.Join(append(out, branch.Support()), "; ")
}

// describeRequest describes the driver that the inventory asks for.
func describeRequest(want inventory.Driver) string {
	var out []string
	if want.Source != "" {
		out = append(out, "source "+string(want.Source))
	}
	if want.Branch != 0 {
		out = append(out, "branch "+strconv.Itoa(want.Branch))
	}
	if want.Flavour != "" {
		out = append(out, "flavour "+string(want.Flavour))
	}
	return strings.Join(out, ", ")
}

// cardNames lists models with their architectures: "A100 SXM4 40GB (Ampere)".
func cardNames(cards []catalog.GPU) string {
	var out []string
	for _, c := range cards {
		out = append(out, fmt.Sprintf("%s (%s)", c.Name, c.Architecture))
	}
	return strings.Join(out, ", ")
}

// DriverWorks reports whether the driver runs and lists all cards that Kubernetes gets.
func DriverWorks(inv *inventory.Inventory, f *facts.Host) bool {
	return driverAnswers(f) && ListedCards(inv, f) >= len(Cards(inv, f))
}

// DriverTrouble says why the driver does not work.
func DriverTrouble(inv *inventory.Inventory, f *facts.Host) string {
	n := f.NVIDIA
	switch {
	case n.Loaded == "" && n.Library == "":
		return "there is no driver"
	case n.Loaded == "":
		return "its module is not loaded"
	case n.Loaded != n.Library:
		return fmt.Sprintf("its module is %s, its library %s", n.Loaded, n.Library)
	case facts.TimedOut(n.SMI):
		return "nvidia-smi hangs"
	case n.SMI != 0:
		return fmt.Sprintf("nvidia-smi fails with status %d", n.SMI)
	}
	return fmt.Sprintf("nvidia-smi shows %d of %s", ListedCards(inv, f), plural.Of(len(Cards(inv, f)), "card"))
}

// BranchOf is the branch of a driver version, 580 of 580.95.05; zero if it has none.
func BranchOf(version string) int {
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major) // zero: no driver has such a version
	return n
}

// foreignDriver describes a driver from NVIDIA's .run installer, which kgpu does not remove.
func foreignDriver(inv *inventory.Inventory, f *facts.Host, d catalog.Driver) string {
	if DriverWorks(inv, f) {
		return fmt.Sprintf("a .run installer put driver %s there, and the inventory asks for %s", f.NVIDIA.Loaded, d)
	}
	return "a .run installer put a driver there that does not work: " + DriverTrouble(inv, f)
}

// lacksFabric is the refusal of a driver whose source lacks the packages for the host's fabric.
func lacksFabric(f *facts.Host, d catalog.Driver, names string) *Refused {
	fabric := FabricOf(f)
	p := d.FabricPackages(fabric)
	return &Refused{Kind: NoFabric, Detail: fmt.Sprintf("%s: the host has %s, which need %s; source %s does not have that for %s %s",
		names, fabric, strings.Join(slices.Concat(p.Driver, p.Others), ", "), d.Source, f.OS.ID, f.OS.VersionID)}
}

// These files mark a driver as installed by kgpu: the first is written before its packages are installed, the second
// by the step after that.
const (
	DriverUpgrades = "/etc/apt/apt.conf.d/52kgpu-nvidia"
	DriverModules  = "/etc/modules-load.d/kgpu-nvidia.conf"
)
