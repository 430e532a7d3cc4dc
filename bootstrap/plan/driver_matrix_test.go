package plan

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// kernels are those of a release that the matrix has, for an architecture of dpkg.
type kernels struct {
	fresh string // the newest of its line that was seen with modules of driver 580; of Debian a late one
	old   string // that of the release's first installer, for which Ubuntu's archive has no modules of a driver of today
	pages string // a fresh one with larger pages; empty: the release has none
}

// kernelsOf are the kernels by release and architecture. Ubuntu has 64k pages for arm64 alone, Debian 16k since 13, and 64k never.
// Sources: packages.ubuntu.com, linux-modules-nvidia-580-server(-open)-generic(-64k); packages.debian.org, source package linux.
var kernelsOf = map[string]map[string]kernels{
	"ubuntu 22.04": {"amd64": {"5.15.0-186-generic", "5.15.0-25-generic", ""}, "arm64": {"5.15.0-186-generic", "5.15.0-25-generic", "5.15.0-186-generic-64k"}},
	"ubuntu 24.04": {"amd64": {"6.8.0-146-generic", "6.8.0-31-generic", ""}, "arm64": {"6.8.0-146-generic", "6.8.0-31-generic", "6.8.0-146-generic-64k"}},
	"ubuntu 26.04": {"amd64": {"7.0.0-34-generic", "7.0.0-14-generic", ""}, "arm64": {"7.0.0-34-generic", "7.0.0-14-generic", "7.0.0-34-generic-64k"}},
	"debian 12":    {"amd64": {"6.1.0-40-amd64", "6.1.0-9-amd64", ""}, "arm64": {"6.1.0-40-arm64", "6.1.0-9-arm64", ""}},
	"debian 13":    {"amd64": {"6.12.48+deb13-amd64", "6.12.38+deb13-amd64", ""}, "arm64": {"6.12.48+deb13-arm64", "6.12.38+deb13-arm64", "6.12.48+deb13-arm64-16k"}},
}

// cardsOf are the cards of the matrix, with the machines that there are with them: "pages" are those for arm64 with larger pages only.
var cardsOf = []struct {
	name     string
	ids      []string
	switches int
	bridges  int
	machines string
}{
	{"RTX 4090", []string{"2684"}, 0, 0, "amd64 pages"}, {"RTX 5090", []string{"2b85"}, 0, 0, "amd64 pages"},
	{"H100 SXM with NVSwitches", []string{"2330"}, 4, 0, "amd64"}, {"HGX B200", []string{"2901"}, 0, 4, "amd64"},
	{"GB200", []string{"2941"}, 0, 0, "arm64 pages"}, {"GTX 1080 Ti", []string{"1b06"}, 0, 0, "amd64 pages"},
	{"GT 710 and RTX 3090", []string{"128b", "2204"}, 0, 0, "amd64"}, {"no card", nil, 0, 0, "amd64 pages"},
}

// existing are the packages that are known to exist, by distribution: (V) is a kernel's version, (M) that of the kernel of its line
// which has modules, (L) the line.
// Sources. Ubuntu's archive: packages.ubuntu.com, jammy-updates, noble-updates and resolute-updates; those of 470 stop at the
// kernels of the releases themselves, those of 610 are empty and lead to 615. NVIDIA's repository: the driver installation guide,
// "Compute-only (headless) installation" and "Version locking"; its nvidia-fabricmanager of 580 has no branch in its name.
// nvidia-dkms-*-server: the same pages. What NVLink 5 systems want: NVIDIA/gpu-driver-container, ubuntu24.04/precompiled/local-repo.sh, and packages.ubuntu.com.
// Debian: packages.debian.org, bookworm and trixie, non-free and contrib.
var existing = map[string][]string{
	"ubuntu": {
		`linux-modules-nvidia-(580|595)-server(-open)?-((M)-)?(L)`, `linux-image-(M)-(L)`, `linux-modules-nvidia-615-server-open-((M)-)?(L)`,
		`nvidia-headless-no-dkms-(580|595)-server(-open)?`, `nvidia-headless-no-dkms-(470-server|615-server-open)`, `nvidia-dkms-(470-server|(580|595)-server(-open)?|615-server-open)`,
		`(nvidia-utils|libnvidia-compute)-(470|580|595|615)-server`, `nvidia-fabricmanager(-(580|595|615))?`, `linux-headers-((V)-)?(L)`,
		`nvidia-driver-pinning-(580|595|610|615|620)`, `nvidia-dkms-580(-open)?`, `(libnvidia-compute|nvidia-utils|nvidia-compute-utils)-580`,
		`nvidia-dkms(-open)?`, `libnvidia-compute`, `nvidia-persistenced`, `nvlsm`, `infiniband-diags`, `nvidia-imex(-580)?`,
		`nvidia-dkms-550(-open)?`, `(libnvidia-compute|nvidia-utils|nvidia-compute-utils)-550`,
	},
	"debian": {
		`linux-headers-((V)-)?(L)`, `nvidia-driver-pinning-(580|595|610|615|620)`, `nvidia-kernel(-open)?-dkms`, `nvidia-open-kernel-dkms`, `nvidia-driver-cuda`,
		`libnvidia-ml1`, `libcuda1`, `nvidia-smi`, `nvidia-persistenced`, `nvidia-fabricmanager`, `nvlsm`, `infiniband-diags`, `nvidia-imex`,
		`nvidia-tesla-470-(kernel-dkms|smi)`, `libnvidia-tesla-470-(cuda1|ml1|cfg1)`,
	},
}

// exists fails the test where a package is named for this kernel that nobody has.
func exists(t *testing.T, f *facts.Host, names []string) {
	t.Helper()
	version, line := catalog.SplitKernel(f.Kernel)
	with, _ := catalog.SplitKernel(kernelsOf[f.OS.ID+" "+f.OS.VersionID][f.Arch].fresh)
	kernel := strings.NewReplacer("(V)", regexp.QuoteMeta(version), "(M)", regexp.QuoteMeta(with), "(L)", regexp.QuoteMeta(line))
	for _, name := range names {
		if !slices.ContainsFunc(existing[f.OS.ID], func(e string) bool { return regexp.MustCompile("^" + kernel.Replace(e) + "$").MatchString(name) }) {
			t.Errorf("%s %s with kernel %s: there is no %s", f.OS.ID, f.OS.VersionID, f.Kernel, name)
		}
	}
}

// packagesOf are all that are named for a driver.
func packagesOf(d catalog.Driver, f *facts.Host) []string {
	p := d.Packages(f.OS.ID, f.Kernel)
	names := slices.Concat(p.First, p.Driver, p.Next)
	if fabric := machine.FabricOf(f); fabric != catalog.NoFabric {
		more := d.FabricPackages(fabric)
		names = slices.Concat(names, more.Driver, more.Others)
	}
	return names
}

// TestDriverMatrix writes down which driver kgpu chooses for what people have, with the names of its packages, all of which exist.
// A host with an old kernel of Ubuntu is one whose apt said that no modules are made for that: with the newest kernel they come, and
// DKMS makes them where that cannot be had.
//
// Left out, for there is no such machine or nobody knows: larger pages on x86-64, which has none; HGX boards of H100 and B200 on
// arm64; GB200 on x86-64; 64k pages on Debian; Kepler's driver 470 with larger pages. What the names do not tell: Debian takes the
// headers of an old kernel out of its archive with the next point release, and the step that wants them says which there are; and
// NVIDIA's repository of Debian 12 may have no arm64, where GB200's driver would come from.
func TestDriverMatrix(t *testing.T) {
	inv := decode(t, threeHosts)
	var out strings.Builder
	for _, c := range cardsOf {
		for _, release := range releases {
			say := func(arch, kernel, newer string) {
				if kernel == "" {
					return
				}
				f := bare(10)
				f.OS, f.Arch, f.Kernel, f.NVIDIA.Cards, f.NVIDIA.Switches, f.NVIDIA.Bridges = release, arch, kernel, cards(c.ids...), c.switches, c.bridges
				f.Ways = []facts.Way{{Name: machine.WayBuilt, Kernel: kernel}}
				if newer != "" {
					f.Ways = []facts.Way{{Name: machine.WayBuilt, Why: "they are not offered"}, {Name: machine.WayNewer, Kernel: newer}}
				}
				fmt.Fprintf(&out, "%s, %s %s, %s, %s: %s\n", c.name, release.ID, release.VersionID, arch, kernel, chosen(t, inv, f))
			}
			of := kernelsOf[release.ID+" "+release.VersionID]
			for _, machine := range strings.Fields(c.machines) {
				if machine == "pages" {
					say("arm64", of["arm64"].pages, "")
					continue
				}
				say(machine, of[machine].fresh, "")
				say(machine, of[machine].old, of[machine].fresh)
			}
		}
	}
	golden(t, "driver-matrix", out.String())
}

// chosen says which driver a host gets and what of.
func chosen(t *testing.T, inv *inventory.Inventory, f *facts.Host) string {
	if len(f.NVIDIA.Cards) == 0 {
		return "no driver"
	}
	var refused *machine.Refused
	c, err := machine.ChooseDriver(inv, f)
	if errors.As(err, &refused) {
		return "refused: " + refused.Detail
	}
	names := packagesOf(c.Driver, f)
	if c.Prebuilt() && f.Ways[0].Kernel == "" {
		// What stands for the running kernel is taken for the newer one, and the kernel itself, by scripts/lib/driver-ways.sh.
		built, dkms := strings.Fields(machine.WayLines(f, c, machine.WayNewer)[0])[2:], strings.Fields(machine.WayLines(f, c, machine.WayDKMS)[0])[3:]
		names = []string{"linux-image-" + f.Ways[1].Kernel}
		for _, name := range built {
			if of, ok := strings.CutSuffix(name, "-"+f.Kernel); ok {
				name = of + "-" + f.Ways[1].Kernel
			}
			names = append(names, name)
		}
		more := c.FabricPackages(machine.FabricOf(f)).Others
		names, dkms = append(names, more...), append(dkms, more...)
		exists(t, f, names)
		exists(t, f, dkms)
		return fmt.Sprintf("%s: with kernel %s: %s; or by DKMS: %s", c.Driver, f.Ways[1].Kernel, strings.Join(names, " "), strings.Join(dkms, " "))
	}
	exists(t, f, names)
	return fmt.Sprintf("%s: %s", c.Driver, strings.Join(names, " "))
}

// Whatever an inventory asks for: what is named exists.
func TestDriversExist(t *testing.T) {
	tried := 0
	for _, release := range releases {
		for _, source := range []catalog.DriverSource{catalog.FromUbuntu, catalog.FromCUDA, catalog.FromDebian, catalog.FromPPA} {
			for _, number := range catalog.DriverOffer(source, release.ID+" "+release.VersionID) {
				branch, _ := catalog.LookupDriverBranch(number)
				for _, flavour := range branch.Flavours([]catalog.Architecture{cmp.Or(map[int]catalog.Architecture{470: catalog.Kepler}[number], catalog.Ampere)}) {
					f := bare(10)
					f.OS, f.Kernel, f.NVIDIA.Switches = release, kernelsOf[release.ID+" "+release.VersionID][f.Arch].fresh, 0
					if catalog.HasFabricManager(source) && number != 470 {
						f.NVIDIA.Switches = 4
					}
					exists(t, f, packagesOf(catalog.Driver{Source: source, Branch: number, Flavour: flavour}, f))
					tried++
				}
			}
		}
	}
	if tried < 40 {
		t.Errorf("%d drivers were tried", tried)
	}
}

// A driver of a branch that ended is put there, or left there, and said.
func TestEndedDrivers(t *testing.T) {
	for _, c := range []struct {
		name, gpu, card, debian string
		loaded, want            string
	}{
		{"asked for", "gpu: {driver: {source: cuda, branch: 610}}\n", "20b0", "13", "",
			"w1: driver 610 is of a new feature branch, the last fixes came in August 2026: without `gpu.driver.branch` kgpu chooses one that gets them, where there is one"},
		{"asked for and there", "gpu: {driver: {branch: 610}}\n", "20b0", "13", "610.57.04",
			"w1: driver 610 is of a new feature branch, the last fixes came in August 2026: without `gpu.driver.branch` kgpu chooses one that gets them, where there is one"},
		{"chosen", "", "15f8", "13", "", "w1: driver 550 is of a production branch, the last fixes came in April 2025: kgpu knows of no newer one for these cards and this release"},
		{"there", "", "20b0", "13", "610.57.04", ""},
		{"gets fixes", "gpu: {driver: {branch: 595}}\n", "20b0", "13", "", ""},
		{"the owner's", "gpu: {driver: {source: none}}\n", "20b0", "13", "550.163.01", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, threeHosts+c.gpu)
			seen := hostFacts(inv)
			f := seen["w1"]
			f.OS, f.NVIDIA.Cards = facts.OS{ID: "debian", VersionID: c.debian, Codename: "trixie"}, cards(c.card)
			if c.loaded != "" {
				f.NVIDIA.Loaded, f.NVIDIA.Library, f.NVIDIA.GPUs, f.NVIDIA.Runfile = c.loaded, c.loaded, make([]facts.GPU, 1), true
			}
			g := planUp(t, inv, seen)
			var got []string
			for _, w := range g.Warnings {
				if strings.Contains(w, "driver") {
					got = append(got, w)
				}
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("warned %q, want %q", got, c.want)
			}
		})
	}
}

// A driver that is not offered any more, and does its work, is left where it is; where it does not, it is refused with what to ask for.
func TestDriverThatIsOfferedNoMore(t *testing.T) {
	inv := decode(t, threeHosts+"gpu: {driver: {source: ubuntu, branch: 610}}\n")
	f := bare(10)
	f.NVIDIA = facts.NVIDIA{Cards: cards("20b0"), Loaded: "610.57.04", Library: "610.57.04", GPUs: make([]facts.GPU, 1)}
	f.Packages["libnvidia-compute-610-server"] = facts.Package{Version: "610.57.04-0ubuntu0.24.04.1"}
	f.Packages["linux-modules-nvidia-610-server-open-6.8.0-146-generic"] = facts.Package{Version: "6.8.0-146.146"}
	c, err := machine.ChooseDriver(inv, f)
	if err != nil || !c.Keep || c.Branch != 610 {
		t.Errorf("a driver that works: %+v, %v", c, err)
	}
	f.NVIDIA.Loaded, f.NVIDIA.GPUs = "", nil
	var refused *machine.Refused
	if _, err := machine.ChooseDriver(inv, f); !errors.As(err, &refused) || refused.Kind != machine.Impossible || !strings.HasSuffix(refused.Detail, "there it has become 615, ask for branch 615") {
		t.Errorf("one that does not: %v", err)
	}
}
