package plan

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// TestForeignKernels are kernels that the distribution did not build: DKMS makes the modules, or the host is told before.
func TestForeignKernels(t *testing.T) {
	const xanmod, mainline, pve = "6.12.9-x64v3-xanmod1", "6.11.0-061100-generic", "6.8.12-4-pve"
	headers := func(name string) func(*facts.Host) {
		return func(f *facts.Host) { f.Packages[name] = facts.Package{Version: "1"} }
	}
	for _, c := range []struct {
		name, id, version, kernel string
		with                      func(*facts.Host)
		refused                   string // a part of it
		headers                   string // that the driver's step installs
	}{
		{"mainline", "ubuntu", "24.04", mainline, func(*facts.Host) {}, "", "linux-headers-" + mainline},
		{"mainline, its package there", "ubuntu", "24.04", mainline, func(f *facts.Host) {
			f.Packages["linux-image-unsigned-"+mainline] = facts.Package{Version: "6.11.0-061100.202409151536"}
		}, "", "linux-headers-" + mainline},
		{"mainline whose headers are not offered", "ubuntu", "24.04", mainline, func(f *facts.Host) { f.Ways = []facts.Way{{Name: machine.WayHeaders, Why: "no"}} },
			"its headers, with which DKMS would, are neither installed nor offered by apt (no)", ""},
		{"mainline with headers", "ubuntu", "24.04", mainline, headers("linux-headers-" + mainline), "", ""},
		{"xanmod", "ubuntu", "24.04", xanmod, func(*facts.Host) {}, "", "linux-headers-" + xanmod},
		{"xanmod whose headers are offered", "ubuntu", "24.04", xanmod, func(f *facts.Host) { f.Ways = []facts.Way{{Name: machine.WayHeaders, Kernel: xanmod}} }, "", "linux-headers-" + xanmod},
		{"xanmod whose headers are not offered", "ubuntu", "24.04", xanmod, func(f *facts.Host) { f.Ways = []facts.Way{{Name: machine.WayHeaders, Why: "it is not offered"}} }, "(it is not offered)", ""},
		{"xanmod under Secure Boot", "ubuntu", "24.04", xanmod, func(f *facts.Host) { f.SecureBoot = true; headers("linux-headers-" + xanmod)(f) }, "Secure Boot is on", ""},
		{"built by hand", "ubuntu", "24.04", "6.12.9-custom", func(f *facts.Host) { f.KernelHeaders = true }, "", ""},
		{"Proxmox", "debian", "12", pve, func(*facts.Host) {}, "", "proxmox-headers-" + pve},
		{"Proxmox whose headers are not offered", "debian", "12", pve, func(f *facts.Host) { f.Ways = []facts.Way{{Name: machine.WayHeaders, Why: "no"}} }, "kernel " + pve + " is not one of debian's", ""},
		{"Proxmox with headers", "debian", "12", pve, headers("proxmox-headers-" + pve), "", ""},
		{"Proxmox whose headers are offered", "debian", "12", pve, func(f *facts.Host) { f.Ways = []facts.Way{{Name: machine.WayHeaders, Kernel: pve}} }, "", "proxmox-headers-" + pve},
		{"a name of nobody's, and the distribution's package", "ubuntu", "24.04", "6.8.0-90000-generic", func(f *facts.Host) {
			f.Packages["linux-image-6.8.0-90000-generic"] = facts.Package{Version: "6.8.0-90000.1"}
			f.KernelHeaders = true
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, threeHosts+containerd)
			seen := hostFacts(inv)
			f := seen["w1"]
			f.OS.ID, f.OS.VersionID, f.Kernel, f.Ways, f.NVIDIA.Cards = c.id, c.version, c.kernel, nil, cards("2204")
			c.with(f)
			choice, err := machine.ChooseDriver(inv, f)
			var refused *machine.Refused
			if c.refused != "" {
				if !errors.As(err, &refused) || refused.Kind != machine.NoModules || !strings.Contains(refused.Detail, c.refused) || refused.Advice == "" {
					t.Fatalf("%+v, %v", choice, err)
				}
				asked := machine.DriverWays(inv, f)
				if c.id == "ubuntu" && (len(asked) == 0 || !strings.HasPrefix(asked[0], "built ")) {
					t.Errorf("asked is %q", asked)
				}
				if line := "headers linux-headers-" + c.kernel + " - linux-headers-" + c.kernel; c.id == "ubuntu" && slices.Contains(asked[1:], line) == machine.HasHeaders(f) {
					t.Errorf("asked is %q", asked)
				}
				f.Ways = []facts.Way{{Name: machine.WayBuilt, Kernel: f.Kernel}} // somebody builds modules for it all the same
				if choice, err := machine.ChooseDriver(inv, f); err != nil || choice.Compiled {
					t.Errorf("with modules in apt: %+v, %v", choice, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if choice.Prebuilt() || strings.Contains(choice.Why, "come built") || !strings.Contains(choice.Why, "DKMS builds the modules, for kernel "+c.kernel) {
				t.Errorf("%+v", choice)
			}
			g := planUp(t, inv, seen)
			values := stepOf(g, "w1", "driver/install").Input.Values
			first := regexp.MustCompile(`\n?nvidia-driver-pinning-\d+\n?`).ReplaceAllString(values["headers"], "")
			if first != c.headers || !strings.Contains(values["packages"], "dkms") || values["next"] != "" || values["ways"] != "" {
				t.Errorf("values: %q", values)
			}
		})
	}
}

// Under Secure Boot only modules count that somebody signed: a host whose apt has package lists knows that there are none, one
// without lists does not, and its step looks.
func TestForeignKernelsUnderSecureBoot(t *testing.T) {
	inv := decode(t, threeHosts+containerd)
	f := hostFacts(inv)["w1"]
	f.Kernel, f.SecureBoot, f.NVIDIA.Cards = "6.12.9-x64v3-xanmod1", true, cards("2204")
	for name, c := range map[string]struct {
		ways    []facts.Way
		refused bool
	}{
		"no package lists":       {[]facts.Way{{Name: machine.WayBuilt, Why: "it is not offered"}}, false},
		"headers only":           {[]facts.Way{{Name: machine.WayBuilt, Why: "it is not offered"}, {Name: machine.WayHeaders, Kernel: f.Kernel}}, true},
		"neither":                {[]facts.Way{{Name: machine.WayBuilt, Why: "it is not offered"}, {Name: machine.WayHeaders, Why: "it is not offered"}}, true},
		"modules that are built": {[]facts.Way{{Name: machine.WayBuilt, Kernel: f.Kernel}}, false},
	} {
		f.Ways = c.ways
		choice, err := machine.ChooseDriver(inv, f)
		if (err != nil) != c.refused || err == nil && choice.Compiled {
			t.Errorf("%s: %+v, %v", name, choice, err)
		}
	}
	// A driver is there and does not answer: that is its step's to tell.
	f.Ways, f.KernelHeaders = nil, true
	f.NVIDIA.Module, f.NVIDIA.Loaded, f.NVIDIA.Library, f.NVIDIA.SMI = "580.173.02", "580.173.02", "580.173.02", 124
	if choice, err := machine.ChooseDriver(inv, f); err != nil || choice.Compiled {
		t.Errorf("a driver that hangs: %+v, %v", choice, err)
	}
}
