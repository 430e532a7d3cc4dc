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

const withCards = threeHosts + "runtime: containerd\nnetwork: flannel\n"

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

// settledWith is a cluster of the inventory that is up, on hosts with these facts.
func settledWith(t *testing.T, yaml string, change func(map[string]*facts.Host)) map[string]*facts.Host {
	t.Helper()
	inv := decode(t, yaml)
	seen := hostFacts(inv)
	change(seen)
	g, err := Up(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	settle(t, inv, seen, g)
	return seen
}

// TestSharing changes how the cards of a running cluster are shared: the device plugin and what follows from it, nothing else.
func TestSharing(t *testing.T) {
	for _, c := range []struct {
		name, gpu string
		facts     func(map[string]*facts.Host)
	}{
		{"time-slicing", "gpu: {timeSlicing: {replicas: 4}}\n", driven()},
		{"mps", "gpu: {mps: {replicas: 2}}\n", driven()},
		{"mig-mixed", "gpu: {migStrategy: mixed, timeSlicing: {replicas: 2}}\n", driven("3g.20gb", "1g.5gb+me", "1g.5gb+me")},
		{"mig-single", "gpu: {migStrategy: single}\n", func(f map[string]*facts.Host) {
			driven("1g.5gb", "1g.5gb")(f)
			f["w1"].NVIDIA.Cards, f["w1"].NVIDIA.GPUs = f["w1"].NVIDIA.Cards[:1], f["w1"].NVIDIA.GPUs[:1]
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := settledWith(t, withCards, c.facts)
			inv := decode(t, withCards+c.gpu)
			g, err := Up(inv, seen)
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"cp1 addon/device-plugin", "cp1 gpu/ready", "w1 gpu/features", "cp1 gpu/labels"}; !slices.Equal(refs(g), want) {
				t.Errorf("planned %q", refs(g))
			}
			golden(t, c.name, describe(g))
			settle(t, inv, seen, g)
			if again, err := Up(inv, seen); err != nil || !again.Empty() {
				t.Errorf("%v, a second plan is not empty:\n%s", err, describe(again))
			}
		})
	}
}

// A proof that is owed is paid when no card of the cluster was left out, whatever other hosts were.
func TestAllCards(t *testing.T) {
	seen := settledWith(t, withCards, driven())
	inv := decode(t, withCards)
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
	seen := settledWith(t, withCards, driven())
	inv := decode(t, withCards)
	seen["cp1"].Unproven = true
	g, err := Up(inv, seen)
	if err != nil || !slices.Equal(refs(g), []string{"cp1 gpu/ready"}) || g.Steps[0].Reason != "the cards were not proven to the end" {
		t.Fatalf("%v, planned:\n%s", err, describe(g))
	}
	if by := g.Steps[0].ByHand; g.Steps[0].Input.Values["prove"] != "yes" || len(by) != 1 || by[0].Input.Values["prove"] != "" || by[0].Ref != g.Steps[0].Ref {
		t.Errorf("by hand: %+v", by)
	}
	seen["cp1"].Unproven = false
	if g, err := Up(inv, seen); err != nil || !g.Empty() {
		t.Errorf("%v, planned:\n%s", err, describe(g))
	}

	// Or it was killed before that, and what was left of its steps let the node offer its cards.
	node := &seen["cp1"].Cluster.Nodes[1]
	maps.DeleteFunc(node.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "nvidia.com/") })
	node.GPULabels = nil
	if g, err := Up(inv, seen); err != nil || !slices.Equal(refs(g), []string{"cp1 gpu/ready", "w1 gpu/features", "cp1 gpu/labels"}) {
		t.Errorf("%v, planned:\n%s", err, describe(g))
	}
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
			seen := settledWith(t, withCards, driven())
			c.change(seen)
			g, err := Up(decode(t, withCards), seen)
			if err != nil {
				t.Fatal(err)
			}
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
	seen := settledWith(t, withCards, driven())
	seen["w1"].NVIDIA.Features = nil
	g, err := Up(decode(t, strings.Replace(withCards, "{disk: fast}", "{nvidia.com/gpu.product: mine}", 1)), seen)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.ID == "gpu/labels" })
	if at < 0 || len(g.Steps[at].ByHand) != 1 {
		t.Fatalf("planned %q", refs(g))
	}
	s := g.Steps[at].ByHand[0]
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
