package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
)

// evilMark is in every text that a shell, a unit or a file format would do something with.
const evilMark = "KGPUEVIL"

var evilTexts = []string{
	"$(touch /tmp/KGPUEVIL)", "$(touch${IFS}KGPUEVIL)", "`KGPUEVIL`", "';KGPUEVIL;'", `";KGPUEVIL;"`, "a\nKGPUEVIL: x", "a\r\n[Service]\nExecStart=KGPUEVIL",
	"; rm KGPUEVIL", ";KGPUEVIL", "-oKGPUEVIL", "--KGPUEVIL=x", "%nKGPUEVIL%i", "KGPUEVIL%20", `\nKGPUEVIL\`, "KGPUEVILü\u202e", "KGPUEVIL\x1b[2J", "KGPUEVIL\x00",
	"{{KGPUEVIL}}", "KGPUEVIL: [", "#KGPUEVIL", "&KGPUEVIL", "|KGPUEVIL", "../../KGPUEVIL", "KGPUEVIL]", "~KGPUEVIL", "KGPUEVIL\u2028x", "!!binary KGPUEVIL",
}

// scalars are the places in an inventory that hold a text: values, and the keys that are the user's own.
func scalars(n *yaml.Node, own bool, visit func(*yaml.Node)) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if own {
				visit(key)
			}
			scalars(value, own || slices.Contains([]string{"labels", "featureGates", "kubeletConfiguration", "clusterConfiguration", "kubeProxyConfiguration"}, key.Value), visit)
		}
	case yaml.ScalarNode:
		visit(n)
	default:
		for _, c := range n.Content {
			scalars(c, own, visit)
		}
	}
}

// outputs are what a plan makes hosts of an inventory receive: by host, step and name.
func outputs(t *testing.T, g *graph.Graph) map[string]string {
	t.Helper()
	out := map[string]string{}
	known := graph.Outputs{}
	for _, s := range g.Steps {
		known[s.Ref] = map[string][]byte{OutputToken: []byte("abcdef.0123456789abcdef"), OutputCAHash: []byte("sha256:00"), outputFeatures: []byte("nvidia.com/gpu.count=1")}
	}
	for _, s := range g.Steps {
		if _, err := scripts.Step(s.Script); err != nil || strings.Contains(s.Script+s.ID, evilMark) {
			t.Errorf("step %s has the script %q: %v", s.Ref, s.Script, err)
		}
		input := s.Input
		if s.LateInput != nil {
			var err error
			if input, err = s.LateInput(known); err != nil {
				t.Error(err)
			}
		}
		at := s.Host + " " + s.ID + " "
		for name, value := range input.Values {
			out[at+name] = value
		}
		for path, f := range input.Files {
			if strings.Contains(path, evilMark) {
				t.Errorf("a file has the path %q", path)
			}
			out[at+path] = string(f.Content)
		}
	}
	return out
}

// strings of a parsed document, keys too.
func texts(v any, add func(string)) {
	switch v := v.(type) {
	case string:
		add(v)
	case map[string]any:
		for k, w := range v {
			add(k)
			texts(w, add)
		}
	case []any:
		for _, w := range v {
			texts(w, add)
		}
	}
}

// holds tells what is wrong with a file that has the text in it; like is what it looks like with an honest one.
func holds(name, content, text, like string) error {
	var all []string
	add := func(s string) { all = append(all, s) }
	switch {
	case strings.HasSuffix(name, " kubeadm"), strings.HasSuffix(name, " manifest"), strings.HasSuffix(name, ".yaml"):
		d := yaml.NewDecoder(strings.NewReader(content))
		for {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			texts(v, add)
		}
	case strings.HasSuffix(name, ".json"):
		var v any
		if err := json.Unmarshal([]byte(content), &v); err != nil {
			return err
		}
		texts(v, add)
	case strings.HasSuffix(name, ".toml"):
		var v map[string]any
		if err := toml.Unmarshal([]byte(content), &v); err != nil {
			return err
		}
		texts(v, add)
	default:
		// Of lines: as many as there would be otherwise, each beginning as it would.
		have, want := strings.Split(content, "\n"), strings.Split(like, "\n")
		if len(have) != len(want) {
			return fmt.Errorf("%d lines, %d with an honest text", len(have), len(want))
		}
		for i, line := range have {
			if strings.ContainsAny(line, "\r\x00\x1b") {
				return fmt.Errorf("the line %q", line)
			}
			if strings.Contains(name, "/systemd/") {
				key, value, _ := strings.Cut(line, "=")
				if likeKey, _, _ := strings.Cut(want[i], "="); key != likeKey || strings.Contains(strings.ReplaceAll(value, "%%", ""), "%") {
					return fmt.Errorf("the line %q in a unit", line)
				}
				line = strings.ReplaceAll(line, "%%", "%")
			}
			add(line)
		}
	}
	found := false
	for _, s := range all {
		if strings.Contains(s, evilMark) {
			found = true
			if !strings.Contains(s, text) {
				return fmt.Errorf("%q became %q", text, s)
			}
		}
	}
	if !found {
		return fmt.Errorf("%q is in it, and is not read from it", text)
	}
	return nil
}

func upOf(data []byte) (*inventory.Inventory, *graph.Graph, error) {
	inv, err := inventory.Decode("inventory.yaml", data, inventory.Options{
		Env: func(name string) (string, bool) { return "/home/me", name == "HOME" }, Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		return nil, nil, err
	}
	seen := hostFacts(inv)
	for id, f := range seen {
		if id != inv.Hosts[0].ID() {
			f.NVIDIA = facts.NVIDIA{Cards: cards("20b0")}
		}
	}
	g, err := Up(inv, seen)
	return inv, g, err
}

// Whatever stands in an inventory: it is refused with its place, or it arrives on the hosts as it is, as data.
func TestInventoriesThatAShellWouldRun(t *testing.T) {
	full, err := os.ReadFile("../../examples/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for runtime, evilTexts := range map[string][]string{"docker": evilTexts, "containerd": {"%nKGPUEVIL%i", "/KGPUEVIL", ";KGPUEVIL", "KGPUEVIL"}} {
		base := strings.Replace(string(full), "runtime: docker", "runtime: "+runtime, 1)
		_, honest, err := upOf([]byte(base))
		if err != nil {
			t.Fatal(err)
		}
		like := outputs(t, honest)
		var root yaml.Node
		if err := yaml.Unmarshal([]byte(base), &root); err != nil {
			t.Fatal(err)
		}
		scalars(&root, false, func(n *yaml.Node) {
			was := *n
			defer func() { *n = was }()
			for i, evil := range evilTexts {
				// Alone in one field and behind what was there in the next: both in all of them takes minutes.
				text := []string{evil, was.Value + evil}[(was.Line+i)%2]
				n.Value, n.Tag, n.Style = text, "!!str", yaml.DoubleQuotedStyle
				data, err := yaml.Marshal(&root)
				if err != nil {
					t.Fatal(err)
				}
				inv, g, err := upOf(data)
				if err != nil {
					refused++
					var problems inventory.Errors
					var known *reason.Error
					switch {
					case inv == nil && (!errors.As(err, &problems) || problems[0].Line < 1 || problems[0].Column < 1):
						t.Errorf("line %d: %q is refused without a place: %v", was.Line, text, err)
					case inv != nil && !errors.As(err, &known):
						t.Errorf("line %d: %q cannot be planned: %v", was.Line, text, err)
					}
					continue
				}
				accepted++
				have := outputs(t, g)
				for _, name := range slices.Sorted(maps.Keys(have)) {
					if !strings.Contains(have[name], evilMark) {
						continue
					}
					whole := text
					if strings.Contains(text, "[") { // a range, which is written out
						whole = evil
					}
					if err := holds(name, have[name], whole, like[name]); err != nil {
						t.Errorf("line %d: %q: %s: %v", was.Line, text, name, err)
					}
				}
			}
		})
	}
	if accepted < 50 || refused < 50 {
		t.Errorf("%d inventories were accepted, %d refused", accepted, refused)
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
}

// What a host tells of itself becomes no argument for another, whatever preflight was told to ignore.
func TestHostsThatAreNotWhoTheySay(t *testing.T) {
	const yaml = "hosts:\n  - {address: 10.0.0.10, name: cp1, role: control-plane}\n  - {address: 10.0.0.11, name: w1}\n  - {address: 10.0.0.12}\n"
	for _, tc := range []struct {
		name string
		node *facts.Node // that the cluster has
		want reason.ID
	}{
		{"w2", nil, ""},
		{"W2", nil, ""},
		{"w2", &facts.Node{Name: "w2", InternalIP: "10.0.0.12"}, ""},
		{"w2", &facts.Node{Name: "w2"}, ""},
		{"cp1", nil, reason.HostNameDuplicate},
		{"W1", nil, reason.HostNameDuplicate},
		{"w3", &facts.Node{Name: "w3", InternalIP: "10.0.0.13"}, reason.HostNameDuplicate},
		{"--all", nil, reason.HostNameInvalid},
		{"w2 --all", nil, reason.HostNameInvalid},
		{"w2\nw1", nil, reason.HostNameInvalid},
		{"$(touch /tmp/x)", nil, reason.HostNameInvalid},
		{"", nil, reason.HostNameInvalid},
		{"localhost", nil, reason.HostNameInvalid},
		{strings.Repeat("a", 254), nil, reason.HostNameInvalid},
	} {
		inv := decode(t, yaml)
		seen := hostFacts(inv)
		seen["10.0.0.12"].Hostname = tc.name
		seen["cp1"].ControlPlane, seen["cp1"].Cluster = &facts.ControlPlane{Finished: true}, &facts.Cluster{}
		if tc.node != nil {
			seen["cp1"].Cluster.Nodes = []facts.Node{*tc.node}
		}
		delete(seen, "w1") // which is not looked at in every run
		_, up := Up(inv, seen)
		_, smoke := Smoke(inv, seen, "", "")
		_, reset := Reset(inv, seen, []string{"10.0.0.12"})
		for story, err := range map[string]error{"up": up, "smoke": smoke, "reset": reset} {
			if tc.want == "" && err != nil || tc.want != "" && !errors.Is(err, &reason.Error{ID: tc.want}) {
				t.Errorf("%s of %.40q: %v, want %q", story, tc.name, err, tc.want)
			}
		}
		if _, err := Reset(inv, seen, nil); err != nil { // no node is touched by its name
			t.Errorf("reset of all with %.40q: %v", tc.name, err)
		}
	}
}

// The labels that a node says kgpu gave it are the node's own to write.
func TestLabelsThatANodeSaysAreOurs(t *testing.T) {
	h := &host{Machine: &machine.Machine{}, node: "w1"}
	n := &facts.Node{
		Labels:    map[string]string{"--all": "", "-l x": "", "nvidia.com/gpu.count": "1", "kgpu.dev/gpu": "true"},
		GPULabels: []string{"--all", "-l x", "nvidia.com/gpu.count", "kgpu.dev/gpu"},
	}
	got := labelLines(h, n, nil)
	if want := []string{"w1\tlabel\tnvidia.com/gpu.count-", "w1\tannotation\tkgpu.dev/gpu-labels="}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
