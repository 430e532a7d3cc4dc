package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// features is what gpu-feature-discovery tells in these tests, of any host with this driver.
const features = "nvidia.com/gpu.product=Tesla-T4\nnvidia.com/gpu.machine=Co., Ltd.\nnvidia.com/cuda.driver-version.full=580.173.02\nnvidia.com/mig-1g.5gb+me.count=2\nother.example.com/x=y\n"

func featuresOf(f *facts.Host) string {
	return strings.Replace(features, "580.173.02", f.NVIDIA.Loaded, 1)
}

func merged(m map[string]int, key string, n int) map[string]int {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]int{}
	}
	out[key] = n
	return out
}

// driven gives w1 cards with a driver: two whole ones, or with profiles one that is cut and a whole one.
func driven(profiles ...string) func(map[string]*facts.Host) {
	return func(f map[string]*facts.Host) {
		gpus := []facts.GPU{{UUID: "GPU-0", Name: "NVIDIA A100-SXM4-40GB"}, {UUID: "GPU-1", Name: "NVIDIA A100-SXM4-40GB"}}
		gpus[0].MIG = len(profiles) > 0
		for i, p := range profiles {
			gpus[0].Instances = append(gpus[0].Instances, facts.Instance{UUID: "MIG-" + string(rune('a'+i)), Profile: p})
		}
		f["w1"].NVIDIA = facts.NVIDIA{Cards: cards("20b0", "20b0"), Loaded: "580.173.02", Library: "580.173.02", GPUs: gpus}
	}
}

// sharings are clusters that are to share their cards in another way.
var sharings = []scenario{
	{name: "time-slicing", before: threeHosts + containerd, inventory: threeHosts + containerd + "gpu: {timeSlicing: {replicas: 4}}\n", facts: driven()},
	{name: "mps", before: threeHosts + containerd, inventory: threeHosts + containerd + "gpu: {mps: {replicas: 2}}\n", facts: driven()},
	{name: "mig-mixed", before: threeHosts + containerd, inventory: threeHosts + containerd + "gpu: {migStrategy: mixed, timeSlicing: {replicas: 2}}\n",
		facts: driven("3g.20gb", "1g.5gb+me", "1g.5gb+me")},
	{name: "mig-single", before: threeHosts + containerd, inventory: threeHosts + containerd + "gpu: {migStrategy: single}\n",
		facts: func(f map[string]*facts.Host) {
			driven("1g.5gb", "1g.5gb")(f)
			f["w1"].NVIDIA.Cards, f["w1"].NVIDIA.GPUs = f["w1"].NVIDIA.Cards[:1], f["w1"].NVIDIA.GPUs[:1]
		}},
}

// TestSharing changes how the cards of a running cluster are shared: the device plugin and what follows from it, nothing else.
func TestSharing(t *testing.T) { writeDown(t, sharings) }

// A proof that is owed is paid when no card of the cluster was left out, whatever other hosts were.
func TestAllCards(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd, driven())
	for _, c := range []struct {
		without string
		want    bool
	}{{"", true}, {"w1", false}, {"w2", true}} {
		some := maps.Clone(seen)
		delete(some, c.without)
		if got := AllCards(inv, some); got != c.want {
			t.Errorf("without %q: %t, want %t", c.without, got, c.want)
		}
	}
	cp := seen["cp1"].Cluster
	cp.Nodes = append(slices.Clone(cp.Nodes), facts.Node{Name: "gone", Labels: map[string]string{gpuLabel: "true"}})
	if !AllCards(inv, seen) {
		t.Error("a node that the inventory does not have any more owes a proof")
	}
}

// A run that was killed during the proof, or failed in it, did all that it planned: the next one proves the cards.
func TestCardsThatWereNotProven(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd, driven())
	seen["cp1"].Unproven = true
	g := planUp(t, inv, seen)
	if !slices.Equal(refs(g), []string{"cp1 gpu/ready"}) || g.Steps[0].Reason != "the cards were not proven to the end" {
		t.Fatalf("planned:\n%s", describe(g))
	}
	if by := g.Steps[0].ByHand; g.Steps[0].Input.Values["prove"] != "yes" || len(by) != 1 || by[0].Input.Values["prove"] != "" || by[0].Ref != g.Steps[0].Ref {
		t.Errorf("by hand: %+v", by)
	}
	seen["cp1"].Unproven = false
	nothingLeft(t, inv, seen)

	// Or it was killed before that, and what was left of its steps let the node offer its cards.
	node := &seen["cp1"].Cluster.Nodes[1]
	maps.DeleteFunc(node.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "nvidia.com/") })
	node.GPULabels = nil
	hasSteps(t, planUp(t, inv, seen), "cp1 gpu/ready", "w1 gpu/features", "cp1 gpu/labels")
}

// TestGPULabels changes what is found out about cards, or what the node has, of a running cluster.
func TestGPULabels(t *testing.T) {
	node := func(f map[string]*facts.Host) *facts.Node { return &f["cp1"].Cluster.Nodes[1] }
	for _, c := range []struct {
		name   string
		change func(map[string]*facts.Host)
		reason string
		lines  []string
	}{
		{"a label that somebody changed", func(f map[string]*facts.Host) { node(f).Labels["nvidia.com/gpu.product"] = "Voodoo" },
			"1 to set: label nvidia.com/gpu.product=Tesla-T4", []string{"w1\tlabel\tnvidia.com/gpu.product=Tesla-T4"}},
		{"one that nobody reports any more", func(f map[string]*facts.Host) {
			node(f).Labels["nvidia.com/mig.strategy"] = "single"
			node(f).GPULabels = append(node(f).GPULabels, "nvidia.com/mig.strategy")
		}, "2 to set: label nvidia.com/mig.strategy-", []string{"w1\tlabel\tnvidia.com/mig.strategy-",
			"w1\tannotation\tkgpu.dev/gpu-labels=nvidia.com/cuda.driver-version.full,nvidia.com/gpu.product"}},
		{"one that is not kgpu's", func(f map[string]*facts.Host) { node(f).Labels["nvidia.com/mig.config"] = "all-1g.5gb" }, "", nil},
		{"another driver", func(f map[string]*facts.Host) { f["w1"].NVIDIA.Features[driverFeature] = "570.133.20" },
			"gpu-feature-discovery has not told of driver 580.173.02", nil},
		{"no file", func(f map[string]*facts.Host) { f["w1"].NVIDIA.Features = nil }, "gpu-feature-discovery has not told of the cards", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, seen := settled(t, threeHosts+containerd, driven())
			c.change(seen)
			g := planUp(t, decode(t, threeHosts+containerd), seen)
			if c.reason == "" {
				if !g.Empty() {
					t.Errorf("planned %q", refs(g))
				}
				return
			}
			if want := []string{"w1 gpu/features", "cp1 gpu/labels"}; !slices.Equal(refs(g), want) || g.Steps[0].Reason != c.reason {
				t.Fatalf("planned %q because %s", refs(g), g.Steps[0].Reason)
			}
			input, err := g.Steps[1].LateInput(graph.Outputs{g.Steps[0].Ref: {outputFeatures: []byte(features)}})
			if got := input.Values["nodes"]; err != nil || got != strings.Join(c.lines, "\n") {
				t.Errorf("%v, to do:\n%s", err, got)
			}
		})
	}
}

// Where people run the steps each host labels its own node: by the same rules, and behind what it finds out.
func TestGPULabelsByHand(t *testing.T) {
	_, seen := settled(t, threeHosts+containerd, driven())
	seen["w1"].NVIDIA.Features = nil
	g := planUp(t, decode(t, strings.Replace(threeHosts+containerd, "{disk: fast}", "{nvidia.com/gpu.product: mine}", 1)), seen)
	labels := stepOf(g, "cp1", "gpu/labels")
	if labels == nil || len(labels.ByHand) != 1 {
		t.Fatalf("planned %q", refs(g))
	}
	s := labels.ByHand[0]
	want := map[string]string{"node": "w1", "keys": labelKey.String(), "texts": labelValue.String(), "own": "nvidia.com/gpu.product"}
	if s.Ref != (graph.Ref{Host: "w1", ID: "gpu/labels"}) || !slices.Equal(s.Needs, []graph.Ref{{Host: "w1", ID: "gpu/features"}}) || !maps.Equal(s.Input.Values, want) {
		t.Errorf("%s needs %q, with %q", s.Ref, s.Needs, s.Input.Values)
	}
}

// What the inventory sets is not overwritten by what is found out.
func TestGPULabelsOfTheInventory(t *testing.T) {
	h := &host{Machine: &machine.Machine{}, node: "w1"}
	h.Labels = map[string]string{"nvidia.com/gpu.product": "mine"}
	found, err := facts.Features(strings.Split(strings.TrimSpace(features), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{driverFeature: "580.173.02"}; !maps.Equal(wantedLabels(h, found), want) {
		t.Errorf("%v", wantedLabels(h, found))
	}
}
