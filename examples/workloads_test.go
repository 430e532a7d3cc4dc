package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// served are the kinds that workloads use, in versions that Kubernetes 1.36 has. extensions/v1beta1, apps/v1beta1 and
// batch/v1beta1 are gone: https://kubernetes.io/docs/reference/using-api/deprecation-guide/.
var served = map[string]string{"ConfigMap": "v1", "Service": "v1", "Deployment": "apps/v1", "Job": "batch/v1"}

const gpu = "nvidia.com/gpu"

// manifest is the part of an object that the tests look at.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string // of a ConfigMap
	Spec       struct {
		Selector yaml.Node // a Service's is a map, a Deployment's holds one
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

type podSpec struct {
	Containers     []container
	InitContainers []container `yaml:"initContainers"`
	Volumes        []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
	}
}

type container struct {
	Name, Image  string
	Resources    struct{ Limits, Requests map[string]any }
	VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
}

// manifests reads a file's objects.
func manifests(t *testing.T, path string) []manifest {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []manifest
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, m)
	}
}

func eachFile(t *testing.T, look func(*testing.T, []manifest)) {
	files, err := filepath.Glob("workloads/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workloads: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { look(t, manifests(t, f)) })
	}
}

func TestKindsAreServed(t *testing.T) {
	eachFile(t, func(t *testing.T, all []manifest) {
		for _, m := range all {
			if m.Metadata.Name == "" || served[m.Kind] == "" || served[m.Kind] != m.APIVersion {
				t.Errorf("%s %q of %s, want %s", m.Kind, m.Metadata.Name, m.APIVersion, served[m.Kind])
			}
		}
	})
}

func TestPodsAskForWholeCardsInLimits(t *testing.T) {
	eachFile(t, func(t *testing.T, all []manifest) {
		cards := 0
		for _, m := range all {
			for _, c := range slices.Concat(m.Spec.Template.Spec.Containers, m.Spec.Template.Spec.InitContainers) {
				if asked, ok := c.Resources.Limits[gpu]; ok {
					n, whole := asked.(int)
					if !whole || n < 1 {
						t.Errorf("%s/%s asks for %v cards", m.Metadata.Name, c.Name, asked)
					}
					cards += n
				}
				if _, ok := c.Resources.Requests[gpu]; ok {
					t.Errorf("%s/%s names cards in requests", m.Metadata.Name, c.Name)
				}
				if host, tag, _ := strings.Cut(c.Image, "/"); !strings.Contains(host, ".") || !strings.Contains(tag, ":") || strings.HasSuffix(tag, ":latest") {
					t.Errorf("%s/%s: the image %s has no registry, or no tag that stays", m.Metadata.Name, c.Name, c.Image)
				}
			}
		}
		if cards == 0 {
			t.Error("nothing asks for a card")
		}
	})
}

func TestReferencesLeadSomewhere(t *testing.T) {
	eachFile(t, func(t *testing.T, all []manifest) {
		var configMaps []string
		var labels []map[string]string
		for _, m := range all {
			if m.Kind == "ConfigMap" {
				configMaps = append(configMaps, m.Metadata.Name)
			}
			labels = append(labels, m.Spec.Template.Metadata.Labels)
		}
		for _, m := range all {
			pod := m.Spec.Template.Spec
			var volumes []string
			for _, v := range pod.Volumes {
				volumes = append(volumes, v.Name)
				if v.ConfigMap.Name != "" && !slices.Contains(configMaps, v.ConfigMap.Name) {
					t.Errorf("%s: there is no ConfigMap %s", m.Metadata.Name, v.ConfigMap.Name)
				}
			}
			for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
				for _, mount := range c.VolumeMounts {
					if !slices.Contains(volumes, mount.Name) {
						t.Errorf("%s/%s: there is no volume %s", m.Metadata.Name, c.Name, mount.Name)
					}
				}
			}
			selected := func(want map[string]string) bool {
				return len(want) > 0 && slices.ContainsFunc(labels, func(have map[string]string) bool { return maps.Equal(have, want) })
			}
			switch m.Kind {
			case "Service":
				var want map[string]string
				if err := m.Spec.Selector.Decode(&want); err != nil || !selected(want) {
					t.Errorf("Service %s selects nothing: %v, %v", m.Metadata.Name, want, err)
				}
			case "Deployment":
				var want struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				}
				if err := m.Spec.Selector.Decode(&want); err != nil || !maps.Equal(want.MatchLabels, m.Spec.Template.Metadata.Labels) {
					t.Errorf("Deployment %s selects other pods than its own: %v, %v", m.Metadata.Name, want, err)
				}
			}
		}
	})
}

func TestProgramsCompile(t *testing.T) {
	programs := 0
	eachFile(t, func(t *testing.T, all []manifest) {
		for _, m := range all {
			for name, text := range m.Data {
				switch filepath.Ext(name) {
				case ".py":
					programs++
					compiles(t, name, text)
				case ".ipynb":
					programs++
					for _, cell := range notebook(t, text) {
						compiles(t, name, cell)
					}
				default:
					t.Errorf("the ConfigMap %s has %s", m.Metadata.Name, name)
				}
			}
		}
	})
	if programs == 0 {
		t.Error("there are no programs")
	}
}

// compiles lets Python read the text, and run nothing.
func compiles(t *testing.T, name, text string) {
	t.Helper()
	cmd := exec.Command("python3", "-I", "-c", "import sys; compile(sys.stdin.read(), sys.argv[1], 'exec')", name)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// notebook returns the code cells of a notebook that must be as https://nbformat.readthedocs.io/en/latest/format_description.html
// says for 4.5, and without outputs.
func notebook(t *testing.T, text string) []string {
	t.Helper()
	type cell struct {
		Type     string          `json:"cell_type"`
		ID       string          `json:"id"`
		Metadata map[string]any  `json:"metadata"`
		Source   []string        `json:"source"`
		Outputs  []any           `json:"outputs"`
		Count    json.RawMessage `json:"execution_count"`
	}
	var n struct {
		Cells    []cell         `json:"cells"`
		Metadata map[string]any `json:"metadata"`
		Format   int            `json:"nbformat"`
		Minor    int            `json:"nbformat_minor"`
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&n); err != nil {
		t.Fatal(err)
	}
	if n.Format != 4 || n.Minor != 5 || n.Metadata["kernelspec"] == nil {
		t.Errorf("format %d.%d, metadata %v", n.Format, n.Minor, n.Metadata)
	}
	var code, ids []string
	for _, c := range n.Cells {
		ids = append(ids, c.ID)
		switch {
		case c.ID == "" || c.Metadata == nil || len(c.Source) == 0:
			t.Errorf("a cell without id, metadata or source: %+v", c)
		case c.Type == "code" && c.Outputs != nil && len(c.Outputs) == 0 && string(c.Count) == "null":
			code = append(code, strings.Join(c.Source, ""))
		case c.Type != "markdown" || c.Outputs != nil || c.Count != nil:
			t.Errorf("a cell that is neither text nor fresh code: %+v", c)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) || len(code) == 0 {
		t.Errorf("cells %v", ids)
	}
	return code
}
