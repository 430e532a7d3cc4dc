package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// cardIDs are PCI device IDs of one card of each kind that people have.
var cardIDs = []struct{ name, id string }{
	{"K80", "102d"}, {"M60", "13f2"}, {"P100", "15f8"}, {"V100", "1db6"}, {"T4", "1eb8"}, {"RTX 3090", "2204"}, {"A100", "20b0"},
	{"L40S", "26b9"}, {"H100 SXM", "2330"}, {"H200", "2335"}, {"B200", "2901"}, {"RTX 4090", "2684"}, {"RTX 5090", "2b85"},
}

var releases = []facts.OS{
	{ID: "ubuntu", VersionID: "22.04"}, {ID: "ubuntu", VersionID: "24.04"}, {ID: "ubuntu", VersionID: "26.04"},
	{ID: "debian", VersionID: "12"}, {ID: "debian", VersionID: "13"},
}

// TestDrivers writes down what every kind of card gets on every release, with and without Secure Boot.
func TestDrivers(t *testing.T) {
	inv := decode(t, threeHosts)
	var out strings.Builder
	say := func(inv *inventory.Inventory, f *facts.Host) {
		c, err := machine.ChooseDriver(inv, f)
		var refused *machine.Refused
		switch {
		case errors.As(err, &refused):
			fmt.Fprintf(&out, "refused (%s): %s\n", refused.Kind, refused.Detail)
		case err != nil:
			t.Fatal(err)
		default:
			p := c.Packages(f.OS.ID, f.Kernel)
			fmt.Fprintf(&out, "%s for %s: %s\n", c.Driver, c.Why, strings.Join(append(p.First, p.Driver...), " "))
		}
	}
	for _, card := range cardIDs {
		for _, release := range releases {
			for _, secure := range []bool{false, true} {
				f := bare(10)
				f.OS, f.SecureBoot = release, secure
				f.Kernel = map[string]string{"ubuntu": "6.8.0-146-generic", "debian": "6.12.41+deb13-amd64"}[release.ID]
				f.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: card.id}}
				boot := ""
				if secure {
					boot = ", Secure Boot"
				}
				fmt.Fprintf(&out, "%s on %s %s%s: ", card.name, release.ID, release.VersionID, boot)
				say(inv, f)
			}
		}
	}
	for _, c := range []struct {
		card, id, distribution, version, driver string
		secure                                  bool
		switches                                int
	}{
		{"T4", "1eb8", "debian", "12", "source: debian", false, 0},
		{"T4", "1eb8", "debian", "12", "source: debian, flavour: open", false, 0},
		{"V100", "1db6", "debian", "13", "source: debian", false, 0},
		{"B200", "2901", "debian", "13", "source: debian", false, 0},
		{"A100", "20b0", "ubuntu", "24.04", "source: debian", false, 0},
		{"H100 SXM with NVSwitches", "2330", "debian", "13", "source: debian", false, 4},
		{"RTX 3090", "2204", "ubuntu", "24.04", "source: ppa", false, 0},
		{"RTX 3090", "2204", "ubuntu", "24.04", "source: ppa", true, 0},
		{"RTX 5090", "2b85", "ubuntu", "24.04", "source: ppa", false, 0},
		{"RTX 3090", "2204", "debian", "12", "source: ppa", false, 0},
		{"RTX 3090", "2204", "ubuntu", "24.04", "branch: 610", false, 0},
		{"RTX 3090", "2204", "ubuntu", "24.04", "source: ubuntu, branch: 610", false, 0},
		{"RTX 3090", "2204", "ubuntu", "24.04", "branch: 615, flavour: proprietary", false, 0},
		{"RTX 3090", "2204", "ubuntu", "26.04", "source: cuda, branch: 580", false, 0},
		{"GTX 1080 Ti", "1b06", "ubuntu", "26.04", "source: cuda", false, 0},
		{"H100 SXM with NVSwitches", "2330", "ubuntu", "24.04", "source: cuda, branch: 580", false, 4},
		{"H100", "2330", "debian", "13", "branch: 620", false, 0},
	} {
		f := bare(10)
		f.OS, f.SecureBoot, f.NVIDIA.Switches = facts.OS{ID: c.distribution, VersionID: c.version}, c.secure, c.switches
		f.NVIDIA.Cards = cards(c.id)
		fmt.Fprintf(&out, "%s on %s %s, %s (Secure Boot: %t): ", c.card, c.distribution, c.version, c.driver, c.secure)
		say(decode(t, threeHosts+"gpu: {driver: {"+c.driver+"}}\n"), f)
	}
	golden(t, "drivers", out.String())
}

// driverFrom is a host with this distribution and a card, whose driver is to be from elsewhere.
func driverFrom(source, distribution, version, codename string) scenario {
	return scenario{name: fmt.Sprintf("driver of %s on %s %s", source, distribution, version),
		inventory: threeHosts + containerd + "gpu: {driver: {source: " + source + "}}\n",
		facts: func(f map[string]*facts.Host) {
			f["w1"].OS, f["w1"].NVIDIA.Cards = facts.OS{ID: distribution, VersionID: version, Codename: codename}, cards("1eb8")
		}}
}

var driverSources = []scenario{
	driverFrom("ppa", "ubuntu", "24.04", "noble"),
	driverFrom("debian", "debian", "12", "bookworm"),
	driverFrom("cuda", "debian", "13", "trixie"),
	driverFrom("cuda", "ubuntu", "26.04", "resolute"),
	driverFrom("cuda", "ubuntu", "24.04", "noble"),
}

// TestDriverRepository writes down that the repository of a driver is added before the driver comes.
func TestDriverRepository(t *testing.T) {
	writeTogether(t, "driver-sources", driverSources, "repo/*", "driver/*")
}

// A step that ended between its packages and their holds is begun again; nothing that runs is disturbed for a hold.
func TestHoldsThatAreMissing(t *testing.T) {
	for name, c := range map[string]struct {
		unheld string
		loaded bool
		want   string
	}{
		"toolkit":                 {"nvidia-container-toolkit", true, "w1 gpu/toolkit,cp1 gpu/ready"},
		"driver":                  {"libnvidia-compute-580-server", false, "w1 driver/install,w1 driver/load,cp1 gpu/ready,w1 gpu/features,cp1 gpu/labels"},
		"driver that runs":        {"libnvidia-compute-580-server", true, ""},
		"driver, nothing missing": {"", false, "w1 driver/load,cp1 gpu/ready,w1 gpu/features,cp1 gpu/labels"},
	} {
		t.Run(name, func(t *testing.T) {
			inv, seen := settled(t, threeHosts+"runtime: docker\nnetwork: flannel\n", func(f map[string]*facts.Host) { f["w1"].NVIDIA.Cards = cards("1eb8") })
			f := seen["w1"]
			if p, ok := f.Packages[c.unheld]; ok {
				f.Packages[c.unheld] = facts.Package{Version: p.Version}
			} else if c.unheld != "" {
				t.Fatalf("%s is not among %v", c.unheld, f.Packages)
			}
			if !c.loaded {
				f.NVIDIA.Loaded, f.NVIDIA.GPUs = "", nil
			}
			g := planUp(t, inv, seen)
			if got := strings.Join(refs(g), ","); got != c.want {
				t.Errorf("planned %q, want %q", got, c.want)
			}
		})
	}
}

// A step that was cut off between settings and the restart is begun again; a docker that restarts takes containers along.
func TestRestartThatIsOwed(t *testing.T) {
	for runtime, want := range map[string]map[string]string{
		"containerd": {"containerd.service": "runtime/containerd", "kubelet.service": "kube/packages"},
		"docker":     {"docker.service": "runtime/docker", "cri-docker.service": "runtime/cri-dockerd", "kubelet.service": "kube/packages"},
	} {
		for unit, step := range want {
			t.Run(runtime+" "+unit, func(t *testing.T) {
				inv, seen := settled(t, threeHosts+"runtime: "+runtime+"\nnetwork: flannel\n")
				seen["w1"].OutdatedUnits = []string{unit}
				g := planUp(t, inv, seen)
				if s := stepOf(g, "w1", step); s == nil || s.Reason != unit+" runs with settings that have changed since" {
					t.Fatalf("planned %v", refs(g))
				}
				if drained := strings.Contains(strings.Join(refs(g), ","), "node/drain"); drained != (unit == "docker.service") {
					t.Errorf("planned %v", refs(g))
				}
			})
		}
	}
}
