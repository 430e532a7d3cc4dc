package preflight

import (
	"os"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

// saying is a host whose facts script printed these lines, too.
func saying(t *testing.T, lines ...string) *facts.Host {
	t.Helper()
	text, err := os.ReadFile("testdata/host.txt")
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(string(text), "end=1\n")
	for _, module := range []string{"overlay", "br_netfilter"} {
		if !strings.Contains(strings.Join(lines, "\n"), "module-off=") {
			base += "module-loaded=" + module + "\n"
		}
	}
	f, err := facts.Parse([]byte(base + strings.Join(append(lines, "end=1\n"), "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// judged are the reasons for which a worker is refused, with their details, and the plan for it beside a control plane that is well.
func judged(t *testing.T, inv *inventory.Inventory, w *facts.Host) (found []string, g *graph.Graph) {
	t.Helper()
	cp := healthy(10)
	for _, p := range Check(inv, []Machine{{Machine: machine.Machine{Host: inv.Hosts[0], Facts: cp}}, {Machine: machine.Machine{Host: inv.Hosts[1], Facts: w}}}, nil) {
		found = append(found, string(p.ID)+" "+p.Detail)
	}
	g, err := plan.Up(inv, map[string]*facts.Host{"cp1": cp, "w1": w})
	if err != nil {
		t.Fatal(err)
	}
	return found, g
}

const (
	oldCard   = "pci=0000:17:00.0 030000 128b " // GeForce GT 710
	card3090  = "pci=0000:18:00.0 030000 2204 nvidia"
	lists3090 = "gpu=GPU-00000000-0000-0000-0000-000000000001, NVIDIA GeForce RTX 3090, 00000000:18:00.0, 24576 MiB, [N/A]"
)

// running is a driver that runs, with the packages of its library and modules.
func running(version string, packages ...string) []string {
	lines := []string{"nvidia-loaded=" + version, "nvidia-module=" + version, "nvidia-library=" + version}
	for _, p := range packages {
		lines = append(lines, "package="+p+" install installed ok "+version+"-0ubuntu0.24.04.1")
	}
	return lines
}

// TestUnusableCardIsExcluded: an unusable card beside a usable one is excluded and named, and the host is accepted.
func TestUnusableCardIsExcluded(t *testing.T) {
	works := running("580.95.05", "libnvidia-compute-580")
	for _, c := range []struct {
		name, more string
		lines      []string
		leftOut    string // part of the warning; empty: there is none
		keeps      bool   // the driver that runs
		installs   string // in the reason of the step that installs a driver; empty: there is none
		cards      string // that the driver is to see; empty: nothing waits for that
		found      string
	}{
		{name: "old display card, the driver works", lines: append(works, oldCard+"-", card3090, lists3090),
			leftOut: "w1: card 0000:17:00.0 (GeForce GT 710) is left out: driver 580.95.05, which runs, is not for GeForce GT 710 (Kepler); `gpu: {driver: {branch: 470, flavour: proprietary}}` takes one for all of them", keeps: true},
		{name: "and source none", more: "gpu: {driver: {source: none}}\n", lines: append(works, oldCard+"-", card3090, lists3090), leftOut: "0000:17:00.0", keeps: true},
		{name: "unknown card with nouveau, the driver works", lines: append(works, "pci=0000:17:00.0 030000 0a65 nouveau", "nouveau=1", card3090, lists3090),
			leftOut: "card 0000:17:00.0 is left out: it is unknown (PCI ID 10de:0a65)", keeps: true},
		{name: "unknown card, source none", more: "gpu: {driver: {source: none}}\n", lines: append(works, "pci=0000:17:00.0 030000 0a65 -", card3090, lists3090),
			leftOut: "0000:17:00.0", keeps: true},
		{name: "unknown card that the driver sees", lines: append(works, "pci=0000:17:00.0 030000 0a65 nvidia", card3090, lists3090, strings.Replace(lists3090, "18:00", "17:00", 1)), keeps: true},
		{name: "nothing in common", lines: []string{oldCard + "nouveau", "pci=0000:18:00.0 030000 2b85 -", "nouveau=1"},
			leftOut: "is left out: driver 580 (open) from ubuntu for GeForce RTX 5090 (Blackwell) is not for GeForce GT 710 (Kepler); `gpu: {driver: {branch: 470, flavour: proprietary}}` takes one for it instead", installs: "driver 580 (open)", cards: "1"},
		{name: "nothing in common, the old one is asked for", more: "gpu: {driver: {branch: 470}}\n", lines: []string{oldCard + "-", "pci=0000:18:00.0 030000 2b85 -"},
			leftOut: "card 0000:18:00.0 (GeForce RTX 5090) is left out: driver 470 (proprietary) from ubuntu for GeForce GT 710 (Kepler) is not for GeForce RTX 5090 (Blackwell); `gpu: {driver: {branch: 580, flavour: open}}` takes one for it instead", installs: "driver 470", cards: "1"},
		{name: "a driver for both that gets no more fixes", lines: []string{oldCard + "-", "pci=0000:18:00.0 030000 2204 -"},
			leftOut: "is not for GeForce GT 710 (Kepler); `gpu: {driver: {branch: 470, flavour: proprietary}}`", installs: "driver 580 (open)", cards: "1"},
		{name: "which is asked for", more: "gpu: {driver: {branch: 470, flavour: proprietary}}\n", lines: []string{oldCard + "-", "pci=0000:18:00.0 030000 2204 -"}, installs: "driver 470", cards: "2"},
		{name: "another one is asked for", more: "gpu: {driver: {branch: 595}}\n", lines: []string{oldCard + "-", "pci=0000:18:00.0 030000 2204 -"}, leftOut: "GT 710", installs: "driver 595 (open)", cards: "1"},
		{name: "two compute cards, one of them old", lines: []string{"pci=0000:17:00.0 030200 102d -", "pci=0000:18:00.0 030200 20b0 -"}, installs: "driver 470", cards: "2"},
		{name: "older card, the driver is newer", lines: append(running("595.91.07", "libnvidia-compute-595-server"), "pci=0000:17:00.0 030200 1db6 -", card3090, lists3090),
			leftOut: "not for Tesla V100 PCIe 32GB (Volta); `gpu: {driver: {branch: 580, flavour: proprietary}}`", keeps: true},
		{name: "older card, the driver's modules are open", lines: append(running("580.95.05", "libnvidia-compute-580-server", "nvidia-dkms-580-server-open"), "pci=0000:17:00.0 030200 1db6 -", card3090, lists3090),
			leftOut: "flavour: proprietary", keeps: true},
		{name: "newer card, the driver is old", lines: append(running("470.256.02", "libnvidia-compute-470"), oldCard+"nvidia", "gpu=GPU-1, NVIDIA GeForce GT 710, 00000000:17:00.0, 2048 MiB, [N/A]", "pci=0000:18:00.0 030000 2b85 -"),
			leftOut: "GT 710", installs: "driver 580 (open)", cards: "1"},
		{name: "card that the driver lost", lines: append(works, "pci=0000:17:00.0 030000 2204 nvidia", card3090, lists3090), keeps: true, cards: "2"},
		{name: "bound to others", lines: append(works, "pci=0000:15:00.0 030000 2204 pci-stub", "pci=0000:16:00.0 030200 2342 nvgrace-gpu-vfio-pci", "pci=0000:17:00.0 030000 2204 pciback", card3090, lists3090),
			leftOut: "w1: card 0000:17:00.0 (GeForce RTX 3090) is left out: the kernel driver pciback has it", keeps: true},
		{name: "bound to others alone", lines: []string{"pci=0000:17:00.0 030000 2204 vfio-pci", "pci=0000:19:00.0 030200 2342 nvgrace-gpu-vfio-pci"}, leftOut: "nvgrace-gpu-vfio-pci has it"},
		{name: "unknown card alone", lines: []string{"pci=0000:17:00.0 030000 0a65 nouveau"}, found: "GPU_UNSUPPORTED the card at 0000:17:00.0 is unknown (PCI ID 10de:0a65)"},
		{name: "old cards alone", lines: []string{oldCard + "-", "pci=0000:18:00.0 030000 128b -"}, installs: "driver 470", cards: "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, g := judged(t, decode(t, "network: flannel\n"+c.more), saying(t, c.lines...))
			if got := strings.Join(found, "; "); got != c.found {
				t.Errorf("found %q, want %q", got, c.found)
			}
			if warned := strings.Join(g.Warnings, "\n"); c.leftOut == "" && strings.Contains(warned, "left out") || !strings.Contains(warned, c.leftOut) {
				t.Errorf("warnings:\n%s\nwant %q", warned, c.leftOut)
			}
			var installs, cards string
			for _, s := range g.Steps {
				switch {
				case s.Host != "w1":
				case s.ID == "driver/install":
					installs = s.Reason
				case s.ID == "driver/load":
					cards = s.Input.Values["cards"]
				case slices.Contains([]string{"driver/remove", "driver/reboot", "driver/nouveau"}, s.ID) && c.keeps:
					t.Errorf("%s: %s", s.ID, s.Reason)
				case s.ID == "driver/reboot" && strings.Contains(s.Reason, "nouveau"):
					t.Errorf("the host reboots for a card that is left out: %s", s.Reason)
				}
			}
			if cards != c.cards || !strings.HasPrefix(installs, c.installs) || c.installs == "" && installs != "" {
				t.Errorf("installs %q for %q cards, want %q for %q", installs, cards, c.installs, c.cards)
			}
		})
	}
}
