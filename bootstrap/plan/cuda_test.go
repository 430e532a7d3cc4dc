package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// TestCUDA writes down which toolkit every kind of card gets on every release with the driver that kgpu chooses, and with
// drivers that are there.
func TestCUDA(t *testing.T) {
	inv := decode(t, threeHosts)
	var out strings.Builder
	say := func(f *facts.Host, driver machine.DriverChoice) {
		toolkit, err := machine.ChooseCUDA(inv, f, driver)
		if err != nil {
			t.Fatal(err)
		}
		names, download, disk := toolkit.Missing(f)
		if len(names) == 0 {
			fmt.Fprintf(&out, "no CUDA: %s\n", toolkit.Why)
			return
		}
		fmt.Fprintf(&out, "%s (%s, %s): %s\n", strings.Join(names, " "), gigabytes(download), gigabytes(disk), toolkit.Why)
	}
	for _, card := range cardIDs {
		for _, release := range releases {
			f := bare(10)
			f.OS, f.NVIDIA.Cards = release, []facts.Card{{Address: "0000:17:00.0", ID: card.id}}
			driver, err := machine.ChooseDriver(inv, f)
			if err != nil {
				continue
			}
			fmt.Fprintf(&out, "%s on %s %s with driver %d: ", card.name, release.ID, release.VersionID, driver.Branch)
			say(f, driver)
		}
	}
	for _, branch := range []int{470, 520, 525, 550, 570, 580, 590, 595, 610, 620} {
		f := bare(10)
		f.NVIDIA.Cards = cards("20b0")
		fmt.Fprintf(&out, "A100 on ubuntu 24.04 with driver %d: ", branch)
		say(f, machine.DriverChoice{Driver: catalog.Driver{Branch: branch}, Keep: true})
	}
	golden(t, "cuda", out.String())
}

// What the inventory asks for is given or refused, never something else.
func TestCUDAAskedFor(t *testing.T) {
	for _, c := range []struct {
		name, gpu, release, card string
		driver                   int
		packages, want           string // of the toolkit; part of the reason or of the refusal
	}{
		{"asked for", `{cuda: "12.9"}`, "24.04", "20b0", 580, "cuda-toolkit-12-9 cudnn9-cuda-12", "the inventory asks for it"},
		{"newer than the driver, of its major version", `{cuda: "13.3"}`, "24.04", "20b0", 580, "cuda-toolkit-13-3 cudnn9-cuda-13", "asks for it"},
		{"without cuDNN", `{cuda: "13.0", cudnn: false}`, "24.04", "20b0", 580, "cuda-toolkit-13-0", "asks for it"},
		{"none", `{cuda: none}`, "24.04", "20b0", 580, "", "the inventory says so"},
		{"cuDNN dropped the card", `{cuda: "12.9"}`, "24.04", "1db6", 580, "cuda-toolkit-12-9", "without cuDNN, which does not run on Tesla V100 PCIe 32GB (Volta)"},
		{"the card was dropped", `{cuda: "13.0"}`, "24.04", "1db6", 580, "", "gpu.cuda 13.0: it does not compile for Tesla V100 PCIe 32GB (Volta)"},
		{"the driver is too old", `{cuda: "13.0"}`, "24.04", "20b0", 570, "", "gpu.cuda 13.0: it needs driver 580 or newer, this is 570"},
		{"not for this release", `{cuda: "12.9"}`, "26.04", "20b0", 580, "", "gpu.cuda 12.9: NVIDIA's repository does not have it for ubuntu 26.04"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := bare(10)
			f.OS.VersionID, f.NVIDIA.Cards = c.release, cards(c.card)
			toolkit, err := machine.ChooseCUDA(decode(t, threeHosts+"gpu: "+c.gpu+"\n"), f, machine.DriverChoice{Driver: catalog.Driver{Branch: c.driver}})
			names, _, _ := toolkit.Missing(f)
			if got := strings.Join(names, " "); got != c.packages {
				t.Errorf("packages %q, want %q", got, c.packages)
			}
			var refused *machine.Refused
			if errors.As(err, &refused) {
				toolkit.Why = refused.Detail
			}
			if !strings.Contains(toolkit.Why, c.want) || (refused != nil) != strings.HasPrefix(c.want, "gpu.cuda") {
				t.Errorf("%q, %v", toolkit.Why, err)
			}
		})
	}
}

// A toolkit that is there stays, whatever a newer kgpu would choose.
func TestCUDAThatIsThere(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	f := seen["w1"]
	f.NVIDIA = facts.NVIDIA{Cards: cards("20b0"), Loaded: "595.91.07", Library: "595.91.07", GPUs: make([]facts.GPU, 1)}
	f.Packages["cuda-toolkit-13-0"] = facts.Package{Version: "13.0.3-1"}
	toolkit, err := machine.ChooseCUDA(inv, f, machine.DriverChoice{Driver: catalog.Driver{Branch: 595}})
	missing, _, _ := toolkit.Missing(f)
	if err != nil || toolkit.Version != "13.0" || !slices.Equal(missing, []string{"cudnn9-cuda-13"}) {
		t.Errorf("%+v lacks %q, %v", toolkit, missing, err)
	}
}

// stepOf finds a host's step.
func stepOf(g *graph.Graph, host, id string) *graph.Step {
	for _, s := range g.Steps {
		if s.Ref == (graph.Ref{Host: host, ID: id}) {
			return s
		}
	}
	return nil
}

// The repository comes without its drivers, unless the driver is from there; a former run's decision stays.
func TestCUDARepository(t *testing.T) {
	const list = "/etc/apt/sources.list.d/kgpu-cuda.list"
	works := facts.NVIDIA{Cards: cards("20b0"), Loaded: "580.173.02", Library: "580.173.02", GPUs: make([]facts.GPU, 1)}
	for _, c := range []struct {
		name, gpu            string
		nvidia               facts.NVIDIA
		files                map[string]string
		packages             []string
		planned, later, pins bool
	}{
		{name: "the driver is Ubuntu's", nvidia: facts.NVIDIA{Cards: cards("20b0")}, planned: true, later: true, pins: true},
		{name: "the driver is from there", gpu: "gpu: {driver: {source: cuda}}\n", nvidia: facts.NVIDIA{Cards: cards("20b0")}, planned: true},
		{name: "the driver is there", nvidia: works, planned: true, later: true, pins: true},
		{name: "a former run brought the driver from there", nvidia: works, files: map[string]string{list: "old", preferencesOf("cuda"): "x"}, planned: true, later: true},
		{name: "a former run kept its drivers out", nvidia: works, files: map[string]string{list: "old", preferencesOf("cuda"): "x", driverPin: "old"}, planned: true, later: true, pins: true},
		{name: "an earlier kgpu added it, and apt may take all from it", nvidia: works, files: map[string]string{list: "old"}, planned: true},
		{name: "NVIDIA's package brought it", nvidia: works, packages: []string{cudaKeyring}},
		{name: "no toolkit is wanted", gpu: "gpu: {cuda: none}\n", nvidia: facts.NVIDIA{Cards: cards("20b0")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, threeHosts+containerd+c.gpu)
			seen := hostFacts(inv)
			seen["w1"].NVIDIA, seen["w1"].Files = c.nvidia, c.files
			for _, name := range c.packages {
				seen["w1"].Packages[name] = facts.Package{Version: "1"}
			}
			g := planUp(t, inv, seen)
			s := stepOf(g, "w1", "repo/cuda")
			if (s != nil) != c.planned {
				t.Fatalf("%+v is planned", s)
			}
			if s == nil {
				return
			}
			if _, pins := s.Input.Files[driverPin]; pins != c.pins || (s.Stage == graph.AfterProof) != c.later {
				t.Errorf("pins: %t, stage: %d", pins, s.Stage)
			}
		})
	}
}

// Nothing that the cluster needs waits for CUDA.
func TestStages(t *testing.T) {
	inv := decode(t, threeHosts+containerd)
	seen := hostFacts(inv)
	seen["w1"].NVIDIA.Cards, seen["w2"].NVIDIA.Cards = cards("20b0"), cards("1db6")
	g := planUp(t, inv, seen)
	now, later := g.InStages(graph.BeforeProof, graph.Proof), g.InStages(graph.AfterProof)
	hasSteps(t, later, "w1 repo/cuda", "w1 gpu/cuda", "w2 repo/cuda", "w2 gpu/cuda")
	if !now.Has("gpu/ready") || now.Has("gpu/cuda") || len(now.Steps)+len(later.Steps) != len(g.Steps) {
		t.Errorf("%q come now", refs(now))
	}
	for _, part := range []*graph.Graph{now, later} {
		if err := part.Validate(); err != nil {
			t.Error(err)
		}
	}
	stepOf(g, "cp1", "gpu/ready").Needs = []graph.Ref{{Host: "w1", ID: "gpu/cuda"}}
	if g.Validate() == nil {
		t.Error("what is needed may come later")
	}
}
