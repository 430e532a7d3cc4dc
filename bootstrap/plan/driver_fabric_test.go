package plan

import (
	"errors"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// hgx is a plan's hosts, of which w1 has the cards and the bridges of an HGX B200.
func hgx(t *testing.T, more string) (*inventory.Inventory, map[string]*facts.Host) {
	t.Helper()
	inv := decode(t, threeHosts+containerd+more)
	seen := hostFacts(inv)
	seen["w1"].NVIDIA.Cards, seen["w1"].NVIDIA.Bridges = cards("2901", "2901"), 4
	return inv, seen
}

// Nobody but NVIDIA's repository has nvlsm: it is added before the fabric is set up, once, and its drivers stay out.
func TestFabricRepository(t *testing.T) {
	inv, seen := hgx(t, "")
	g := planUp(t, inv, seen)
	var repositories []*graph.Step
	for _, s := range g.Steps {
		if s.Ref == (graph.Ref{Host: "w1", ID: "repo/cuda"}) {
			repositories = append(repositories, s)
		}
	}
	fabric := stepOf(g, "w1", "driver/fabric")
	if len(repositories) != 1 || repositories[0].Stage != graph.BeforeProof || fabric == nil || !slices.Contains(fabric.Needs, repositories[0].Ref) {
		t.Fatalf("planned %q", refs(g))
	}
	if _, pinned := repositories[0].Input.Files[driverPin]; !pinned {
		t.Errorf("NVIDIA's drivers are not kept out: %v", repositories[0].Input.Files)
	}
	settles(t, inv, seen, g)
}

// A fabric that is not complete is looked at again, though all packages are there and all units run.
func TestFabricThatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		fabric facts.GPUFabric
		owners bool
		want   string
	}{
		"in progress":            {facts.GPUFabric{Address: "00000000:17:00.0", State: "In Progress", Status: "N/A"}, false, "card 00000000:17:00.0: fabric State: In Progress, Status: N/A"},
		"failed":                 {facts.GPUFabric{Address: "00000000:17:00.0", State: "Completed", Status: "Insufficient Resources"}, false, "card 00000000:17:00.0: fabric State: Completed, Status: Insufficient Resources"},
		"of the owner's driver":  {facts.GPUFabric{Address: "00000000:17:00.0", State: "In Progress", Status: "N/A"}, true, "card 00000000:17:00.0: fabric State: In Progress, Status: N/A"},
		"complete":               {facts.GPUFabric{Address: "00000000:17:00.0", State: "Completed", Status: "Success"}, false, ""},
		"the cards have no such": {facts.GPUFabric{Address: "00000000:17:00.0", State: "N/A", Status: "N/A"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inv, seen := hgx(t, "gpu: {cuda: none}\n")
			g := planUp(t, inv, seen)
			settle(t, inv, seen, g)
			seen["w1"].NVIDIA.Fabric = []facts.GPUFabric{c.fabric}
			if c.owners {
				delete(seen["w1"].Files, machine.DriverUpgrades)
				delete(seen["w1"].Files, machine.DriverModules)
			}
			g = planUp(t, inv, seen)
			got := ""
			if s := stepOf(g, "w1", "driver/fabric"); s != nil {
				got = s.Reason
			}
			if got != c.want {
				t.Errorf("planned %q because %q, want %q", refs(g), got, c.want)
			}
		})
	}
}

// A driver whose source has nothing for the fabric is refused before anything is installed, with what is missing.
func TestFabricThatCannotBeHad(t *testing.T) {
	f := bare(10)
	f.OS, f.NVIDIA.Cards, f.NVIDIA.Switches = facts.OS{ID: "debian", VersionID: "13"}, cards("2330"), 4
	const want = "H100 SXM5 80GB (Hopper): the host has NVSwitches, which need nvidia-fabricmanager; source debian does not have that for debian 13"
	var refused *machine.Refused
	if _, err := machine.ChooseDriver(decode(t, threeHosts+"gpu: {driver: {source: debian}}\n"), f); !errors.As(err, &refused) || refused.Kind != machine.NoFabric || refused.Detail != want {
		t.Errorf("%v, want %s", err, want)
	}
	f.NVIDIA.Switches = 0
	if c, err := machine.ChooseDriver(decode(t, threeHosts+"gpu: {driver: {source: debian}}\n"), f); err != nil || c.Branch != 550 {
		t.Errorf("without NVSwitches: %+v, %v", c, err)
	}
}
