package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// TestChooseNotebook: the framework computes on the cards and its image is made for the hosts; where none does, it is refused.
func TestChooseNotebook(t *testing.T) {
	const ampere, blackwell, pascal, kepler = "2204", "2b85", "1b06", "1180"
	for _, c := range []struct {
		name, inventory string
		cards           map[string]string // by host
		arm             []string
		want            catalog.Framework // empty: refused
		nodes           []string
		why             string
	}{
		{name: "Ampere", cards: map[string]string{"w1": ampere}, want: catalog.TensorFlow, nodes: []string{"w1"}},
		{name: "Pascal", cards: map[string]string{"w1": pascal}, want: catalog.TensorFlow, nodes: []string{"w1"}},
		{name: "Blackwell", cards: map[string]string{"w1": blackwell}, want: catalog.PyTorch, nodes: []string{"w1"},
			why: "tensorflow does not compute on GeForce RTX 5090 (Blackwell) of w1"},
		{name: "an arm64 host", cards: map[string]string{"w1": ampere}, arm: []string{"w1"}, want: catalog.PyTorch, nodes: []string{"w1"},
			why: "tensorflow has no image for the processor of w1 (arm64)"},
		{name: "asked for, and it computes", inventory: "notebook: {framework: pytorch}\n", cards: map[string]string{"w1": ampere}, want: catalog.PyTorch, nodes: []string{"w1"}},
		{name: "both generations", cards: map[string]string{"w1": blackwell, "w2": pascal}, want: catalog.TensorFlow, nodes: []string{"w2"},
			why: "tensorflow on w2: tensorflow does not compute on GeForce RTX 5090"},
		{name: "both, one asked for", inventory: "notebook: {framework: pytorch}\n", cards: map[string]string{"w1": blackwell, "w2": pascal},
			want: catalog.PyTorch, nodes: []string{"w1"}, why: "pytorch does not compute on GeForce GTX 1080 Ti"},
		{name: "TensorFlow on Blackwell", inventory: "notebook: {framework: tensorflow}\n", cards: map[string]string{"w1": blackwell}, why: "tensorflow does not compute on GeForce RTX 5090"},
		{name: "PyTorch on Pascal", inventory: "notebook: {framework: pytorch}\n", cards: map[string]string{"w1": pascal}, why: "pytorch does not compute on GeForce GTX 1080 Ti"},
		{name: "another PyTorch on Pascal", inventory: "notebook: {framework: pytorch, version: \"2.5.1\"}\n", cards: map[string]string{"w1": pascal},
			want: catalog.PyTorch, nodes: []string{"w1"}},
		{name: "TensorFlow on arm64", inventory: "notebook: {framework: tensorflow}\n", cards: map[string]string{"w1": ampere}, arm: []string{"w1"},
			why: "tensorflow has no image for the processor of w1 (arm64)"},
		{name: "nothing computes", cards: map[string]string{"w1": kepler}, why: "pytorch does not compute on GeForce GTX 680"},
		{name: "an image of one's own", inventory: "notebook: {image: \"reg.lan/notebook:1\"}\n", cards: map[string]string{"w1": kepler, "w2": blackwell}, nodes: []string{"w1", "w2"}},
		{name: "no cards"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, threeHosts+containerd+"gpu: {driver: {source: none}}\n"+c.inventory)
			seen := hostFacts(inv)
			for host, id := range c.cards {
				seen[host].NVIDIA = facts.NVIDIA{Cards: cards(id), Loaded: "570.133.20", Library: "570.133.20", GPUs: make([]facts.GPU, 1)}
			}
			for _, host := range c.arm {
				seen[host].Arch = "arm64"
			}
			got, err := machine.ChooseNotebook(inv, seen)
			var refused *machine.Refused
			if refuse := c.want == "" && c.nodes == nil && c.cards != nil; errors.As(err, &refused) != refuse {
				t.Fatalf("%+v, %v", got, err)
			}
			if refused != nil {
				if refused.Kind != machine.NoNotebook || !strings.Contains(refused.Detail, c.why) {
					t.Errorf("%v", refused)
				}
				return
			}
			if got.Framework != c.want || !slices.Equal(got.Nodes, c.nodes) || !strings.Contains(got.Why, c.why) || got.Pinned != (len(c.nodes) < len(c.cards)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestNotebookFollowsTheCards: the notebook that is deployed has the chosen image, and stays off nodes where it would not compute.
func TestNotebookFollowsTheCards(t *testing.T) {
	inv := decode(t, oneCard)
	seen := withNotebook(t)
	seen["w1"].NVIDIA.Cards = cards("2b85")
	seen["w2"].NVIDIA = facts.NVIDIA{Cards: cards("1b06"), Loaded: "570.133.20", Library: "570.133.20", GPUs: make([]facts.GPU, 1)}
	for framework, node := range map[catalog.Framework]string{catalog.PyTorch: "w1", catalog.TensorFlow: "w2"} {
		inv.Notebook.Framework = framework
		g, err := Notebook(inv, seen, true)
		if err != nil {
			t.Fatal(err)
		}
		manifest := g.Steps[0].Input.Values["manifest"]
		if !strings.Contains(manifest, "image: "+catalog.NotebookImage(framework, "")) || !strings.Contains(manifest, "operator: In\n") || !strings.Contains(manifest, "- "+node+"\n") {
			t.Errorf("%s does not run on %s only:\n%s", framework, node, manifest)
		}
		if !strings.Contains(g.Steps[0].Reason, "does not compute on") {
			t.Errorf("the plan does not say why: %s", g.Steps[0].Reason)
		}
	}
	inv.Notebook.Framework = catalog.TensorFlow
	seen["w2"].NVIDIA.Cards = cards("2b85")
	if g, err := Notebook(inv, seen, true); err != nil || len(g.Steps) != 0 || len(g.Warnings) != 1 {
		t.Errorf("a notebook that cannot compute is deployed: %v, %v", g, err)
	}
}
