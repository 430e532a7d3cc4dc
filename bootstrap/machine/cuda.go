package machine

import (
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Toolkit is the CUDA toolkit chosen for a host with GPUs.
type Toolkit struct {
	Version  string
	Packages []CUDAPackage // empty if the host gets no toolkit
	Why      string        // the reason for the choice, for people
}

// CUDAPackage is a package with its approximate download and installed sizes in MB.
type CUDAPackage struct {
	Name           string
	Download, Disk int
}

// ChooseCUDA decides which CUDA toolkit a host with this driver gets. The error is a *Refused if the inventory's
// toolkit does not run there.
func ChooseCUDA(inv *inventory.Inventory, f *facts.Host, driver DriverChoice) (Toolkit, error) {
	cards, err := knownCards(inv, f)
	if err != nil {
		return Toolkit{}, err
	}
	if inv.GPU.CUDA == catalog.NoCUDA {
		return Toolkit{Why: "the inventory says so"}, nil
	}
	release := f.OS.ID + " " + f.OS.VersionID
	cannot := func(c catalog.CUDA) string {
		switch {
		case !slices.Contains(c.Releases, release):
			return "NVIDIA's repository does not have it for " + release
		case !compilesFor(c.Runs, cards):
			return "it does not compile for " + cardNames(cards)
		case driver.Branch < c.LeastDriver():
			return fmt.Sprintf("it needs driver %d or newer, this is %d", c.LeastDriver(), driver.Branch)
		}
		return ""
	}
	if c, ok := catalog.LookupCUDA(inv.GPU.CUDA); ok {
		if problem := cannot(c); problem != "" {
			return Toolkit{}, &Refused{Kind: CUDAImpossible, Detail: "gpu.cuda " + c.Version + ": " + problem}
		}
		return toolkit(inv, c, cards, "the inventory asks for it"), nil
	}
	possible := slices.DeleteFunc(slices.Clone(catalog.CUDAToolkits()), func(c catalog.CUDA) bool { return cannot(c) != "" })
	if len(possible) == 0 {
		return Toolkit{Why: fmt.Sprintf("NVIDIA's repository has no toolkit for %s that runs %s with driver %d", release, cardNames(cards), driver.Branch)}, nil
	}
	c, why := preferredCUDA(f, possible, driver)
	return toolkit(inv, c, cards, why), nil
}

// preferredCUDA prefers a release that is installed already, then the newest one that the driver supports fully, then the
// oldest one that is newer than the driver.
func preferredCUDA(f *facts.Host, possible []catalog.CUDA, driver DriverChoice) (catalog.CUDA, string) {
	c := possible[0]
	why := fmt.Sprintf("it came out with driver %d, and %d runs it but for what is new in it", c.Driver, driver.Branch)
	for _, p := range possible {
		if p.Driver <= driver.Branch {
			c, why = p, fmt.Sprintf("the newest for driver %d and these cards", driver.Branch)
		}
	}
	for _, p := range possible {
		if _, ok := f.Packages[p.Package()]; ok {
			c, why = p, "it is there"
		}
	}
	return c, why
}

func toolkit(inv *inventory.Inventory, c catalog.CUDA, cards []catalog.GPU, why string) Toolkit {
	t := Toolkit{Version: c.Version, Packages: []CUDAPackage{{c.Package(), c.Download, c.Disk}}, Why: why}
	switch library := c.CUDNN(); {
	case !inv.GPU.CUDNN:
	case compilesFor(library.Runs, cards):
		t.Packages = append(t.Packages, CUDAPackage{library.Package, library.Download, library.Disk})
	default:
		t.Why += "; without cuDNN, which does not run on " + cardNames(cards)
	}
	return t
}

// compilesFor reports whether the toolkit generates code for all of the cards' architectures.
func compilesFor(all []catalog.Architecture, cards []catalog.GPU) bool {
	return !slices.ContainsFunc(cards, func(c catalog.GPU) bool { return !slices.Contains(all, c.Architecture) })
}

// Missing returns the toolkit's packages that are not installed, and their total sizes in MB.
func (t Toolkit) Missing(f *facts.Host) (names []string, download, disk int) {
	for _, p := range t.Packages {
		if _, ok := f.Packages[p.Name]; !ok {
			names, download, disk = append(names, p.Name), download+p.Download, disk+p.Disk
		}
	}
	return names, download, disk
}
