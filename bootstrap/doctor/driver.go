package doctor

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

func nouveau(s *examinee) []string {
	var out []string
	for _, c := range machine.Cards(s.inv, s.f) {
		if c.Driver == "nouveau" {
			out = append(out, "card "+c.Address+" has the kernel driver nouveau")
		}
	}
	return out
}

// listedGPUs is the number of cards that nvidia-smi lists.
func (s *examinee) listedGPUs() int { return max(len(s.e.Cards), len(s.f.NVIDIA.GPUs)) }

func seesAll(s *examinee) bool { return s.cards > 0 && s.listedGPUs() >= s.cards && s.e.SMI == 0 }

func notAllCards(s *examinee) []string {
	if s.cards == 0 || s.f.NVIDIA.Loaded == "" || !s.e.Asked || s.listedGPUs() >= s.cards && s.e.SMI == 0 {
		return nil
	}
	if s.e.SMI == 0 || s.lostGPU() {
		return append([]string{fmt.Sprintf("%d of %s in nvidia-smi's list", s.listedGPUs(), plural.Of(s.cards, "card"))}, s.e.SMIOutput...)
	}
	return append([]string{fmt.Sprintf("nvidia-smi ends with status %d", s.e.SMI)}, s.e.SMIOutput...)
}

// lostGPU reports whether nvidia-smi says that it cannot reach a card.
func (s *examinee) lostGPU() bool {
	return slices.ContainsFunc(s.e.SMIOutput, func(line string) bool {
		return strings.Contains(line, "Unable to determine the device handle") || strings.Contains(line, "GPU is lost")
	})
}

// These are exit statuses of nvidia-smi. Source: its manual, "Return value".
const (
	smiMismatch = 18
	smiInfoROM  = 14
)

func infoROM(s *examinee) []string {
	says := func(line string) bool { return strings.Contains(strings.ToLower(line), "inforom is corrupted") }
	if s.e.SMI != smiInfoROM && !slices.ContainsFunc(s.e.SMIOutput, says) {
		return nil
	}
	return append([]string{fmt.Sprintf("nvidia-smi ends with status %d", s.e.SMI)}, s.e.SMIOutput...)
}

func mismatch(s *examinee) []string {
	n := s.f.NVIDIA
	if s.cards == 0 || n.Loaded == "" {
		return nil
	}
	var out []string
	if n.Library != "" && n.Loaded != n.Library {
		out = append(out, fmt.Sprintf("the loaded module is %s, the libraries are %s", n.Loaded, n.Library))
	}
	for _, line := range s.e.SMIOutput {
		if s.e.SMI == smiMismatch || strings.Contains(line, "version mismatch") {
			out = append(out, line)
		}
	}
	if len(out) > 0 && s.e.DriverUpgraded != "" {
		out = append(out, "last upgrade of a driver: "+s.e.DriverUpgraded)
	}
	return out
}

func driverMissing(s *examinee) []string {
	if n := s.f.NVIDIA; s.cards == 0 || n.Loaded != "" || n.Library != "" || n.Module != "" {
		return nil
	}
	return []string{plural.Of(s.cards, "card") + ", no module and no libraries of a driver"}
}

func noModule(s *examinee) []string {
	if n := s.f.NVIDIA; s.cards == 0 || n.Loaded != "" || n.Library == "" || n.Module != "" {
		return nil
	}
	return append([]string{fmt.Sprintf("the libraries are %s, kernel %s has no module", s.f.NVIDIA.Library, s.f.Kernel)}, s.e.DKMS...)
}

func notLoaded(s *examinee) []string {
	if n := s.f.NVIDIA; s.cards == 0 || n.Loaded != "" || n.Module == "" {
		return nil
	}
	return []string{fmt.Sprintf("module %s is installed for kernel %s and not loaded", s.f.NVIDIA.Module, s.f.Kernel)}
}

// nextKernel checks the newest kernel, which the next boot would start.
func nextKernel(s *examinee) []string {
	if s.cards == 0 || len(s.e.Kernels) < 2 {
		return nil
	}
	var running Kernel
	for _, k := range s.e.Kernels {
		if k.Running {
			running = k
		}
	}
	newest := slices.MaxFunc(s.e.Kernels, func(a, b Kernel) int { return compareVersions(a.Release, b.Release) })
	if !running.Module || newest.Module || newest.Running {
		return nil
	}
	what := "kernel " + newest.Release + " is installed, without a module of the driver"
	if !newest.Headers {
		what += " and without headers to build one"
	}
	return []string{what}
}

var digits = regexp.MustCompile(`\d+`)

// compareVersions compares the numbers in two versions, one by one.
func compareVersions(a, b string) int {
	numbers := func(s string) []int {
		var out []int
		for _, d := range digits.FindAllString(s, -1) {
			n, _ := strconv.Atoi(d) // too many digits for a version
			out = append(out, n)
		}
		return out
	}
	return slices.Compare(numbers(a), numbers(b))
}

func compiler(s *examinee) []string {
	if s.cards == 0 || s.e.KernelGCC == "" || s.e.GCC == "" || s.e.KernelGCC == s.e.GCC || len(s.e.DKMS) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the kernel was built with gcc %s, the host has gcc %s", s.e.KernelGCC, s.e.GCC)}
}

// driverPart matches packages that have the same version if they belong to the same driver.
var driverPart = regexp.MustCompile(`^(libnvidia-compute|libnvidia-ml1|libcuda1|nvidia-dkms|nvidia-kernel-(open-)?dkms|nvidia-kernel-source|nvidia-headless|nvidia-utils|nvidia-compute-utils)(-|$)`)

// mixed compares versions, and whether their revisions are the archive's (-0ubuntu…) or NVIDIA's (-1, -1ubuntu1).
func mixed(s *examinee) []string {
	kinds := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.f.Packages)) {
		if !driverPart.MatchString(name) {
			continue
		}
		version := s.f.Packages[name].Version
		upstream, revision, _ := strings.Cut(version[strings.IndexByte(version, ':')+1:], "-")
		kind := upstream
		if strings.HasPrefix(revision, "0ubuntu") {
			kind += " of Ubuntu"
		}
		if kinds[kind] == "" {
			kinds[kind] = name + " " + version
		}
	}
	if len(kinds) < 2 {
		return nil
	}
	return slices.Sorted(maps.Values(kinds))
}

// cardNode matches the device file of a card. Other files in /dev belong to the driver as a whole.
var cardNode = regexp.MustCompile(`^/dev/nvidia\d+$`)

func deviceNodes(s *examinee) []string {
	have := 0
	for _, path := range s.e.DeviceNodes {
		if cardNode.MatchString(path) {
			have++
		}
	}
	if !s.answered || s.cards == 0 || s.f.NVIDIA.Loaded == "" || have >= s.cards {
		return nil
	}
	return []string{plural.Of(have, "device node") + " for " + plural.Of(s.cards, "card")}
}

func persistence(s *examinee) []string {
	var out []string
	for _, c := range s.e.Cards {
		if !c.Persistent {
			out = append(out, "GPU "+c.Address+": persistence mode Disabled")
		}
	}
	u, ok := s.e.Units["nvidia-persistenced"]
	if s.slow && u.State != "active" {
		out = append(out, "nvidia-smi takes many seconds to answer")
	}
	if ok && len(out) > 0 {
		out = append(out, append([]string{"nvidia-persistenced is " + u.State}, u.Log...)...)
	}
	return out
}

// persistenceUnit is nvidia-persistenced if it is not running. If it is, some packages start it with
// --no-persistence-mode, and restarting it would change nothing.
func persistenceUnit(s *examinee) []string {
	if u, ok := s.e.Units["nvidia-persistenced"]; ok && u.State != "active" {
		return []string{"nvidia-persistenced.service"}
	}
	return nil
}

func migPending(s *examinee) []string {
	var out []string
	for _, m := range s.e.MIG {
		if known := m.Pending == "Enabled" || m.Pending == "Disabled"; known && m.Current != m.Pending { // not "[N/A]"
			out = append(out, fmt.Sprintf("GPU %s: MIG is %s, and %s is pending", m.Address, m.Current, m.Pending))
		}
	}
	for _, g := range s.f.NVIDIA.GPUs {
		if g.MIG && len(g.Instances) == 0 && s.inv.GPU.MIGStrategy != inventory.MIGNone {
			out = append(out, "GPU "+g.Address+": MIG is on, and there are no instances")
		}
	}
	return out
}

// These bound the drivers of branch 570 that NVIDIA warns of. Source: GPU operator, troubleshooting.
const migFirst, migLast = "570.124", "570.158.01.999"

func migDriver(s *examinee) []string {
	loaded := s.f.NVIDIA.Loaded
	cut := slices.ContainsFunc(s.f.NVIDIA.GPUs, func(g facts.GPU) bool { return g.MIG })
	if !cut || s.inv.GPU.MIGStrategy != inventory.MIGMixed || compareVersions(loaded, migFirst) < 0 || compareVersions(loaded, migLast) > 0 {
		return nil
	}
	return []string{"driver " + loaded + " with `migStrategy: mixed`"}
}

func retiredKey(s *examinee) []string {
	var out []string
	for _, a := range s.e.Sources {
		if strings.Contains(a.URL, "developer.download.nvidia.com/compute/cuda/") && a.SignedBy == "" {
			out = append(out, a.File+" has "+a.URL+" without signed-by")
		}
	}
	return out
}

func signedBy(s *examinee) []string {
	if !strings.HasPrefix(s.e.AptRefuses, "Conflicting values set for option") {
		return nil
	}
	out := []string{s.e.AptRefuses}
	for _, a := range s.e.Sources {
		if a.SignedBy != "" && strings.Contains(s.e.AptRefuses, a.SignedBy) {
			out = append(out, a.File+" has "+a.URL+" ("+a.SignedBy+")")
		}
	}
	return out
}

func holdLost(s *examinee) []string {
	if len(s.e.HoldsLost) == 0 {
		return nil
	}
	return []string{"no longer held: " + strings.Join(s.e.HoldsLost, ", ")}
}
