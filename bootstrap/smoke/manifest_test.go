package smoke

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// sample is what the nodes of these tests compute with.
var sample = catalog.SampleOf(580)

var update = flag.Bool("update", false, "write the golden files")

// cards makes cards whose UUIDs are of this host and nobody else's.
func cards(host string, count int, name string) []GPU {
	var out []GPU
	for i := range count {
		out = append(out, GPU{UUID: fmt.Sprintf("GPU-%s-%d", host, i), Name: name})
	}
	return out
}

func TestManifest(t *testing.T) {
	for _, c := range []struct {
		name  string
		minor int
		nodes []Node
	}{
		{"one-card", 36, []Node{{Name: "cp1"}, {Name: "w1", Sample: sample, GPUs: cards("w1", 1, "Tesla T4")}}},
		{"two-nodes", 36, []Node{
			{Name: "gpu-a.lab.example.com", Sample: sample, GPUs: cards("a", 2, "NVIDIA A100-SXM4-40GB")},
			{Name: "w2", Sample: catalog.SampleOf(470), GPUs: cards("w2", 1, "Tesla K80")},
		}},
		{"eight-cards", 36, []Node{{Name: "dgx", Sample: sample, GPUs: cards("dgx", 8, "NVIDIA H100 80GB HBM3")}}},
		{"shared-and-cut", 36, []Node{{Name: "w1", Sample: sample, GPUs: []GPU{
			{UUID: "GPU-w1-0", Name: "Tesla T4", Resource: "nvidia.com/gpu", Share: 2},
			{UUID: "MIG-w1-0", Name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb", Resource: "nvidia.com/mig-1g.5gb", Share: 1},
		}}}},
		{"accelerators", 6, []Node{{Name: "w1", Sample: catalog.SampleOf(375), GPUs: cards("w1", 1, "Tesla K80"), Driver: []machine.DriverMount{
			{Name: "lib-nvidia-375-bin", From: "/usr/lib/nvidia-375/bin", To: "/usr/local/nvidia/bin"},
			{Name: "lib-nvidia-375", From: "/usr/lib/nvidia-375", To: "/usr/local/nvidia/lib"},
			{Name: "lib-x86-64-linux-gnu-libcuda-so-375-82", From: "/usr/lib/x86_64-linux-gnu/libcuda.so.375.82", To: "/usr/local/nvidia/lib64/libcuda.so.1"},
		}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Manifest(c.nodes, minor(t, c.minor), nil)
			must(t, err)
			path := filepath.Join("testdata", c.name+".golden.yaml")
			if *update {
				must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			must(t, err)
			if got != string(want) {
				t.Errorf("%s differs (go test ./bootstrap/smoke -update writes it):\n%s", path, got)
			}
		})
	}
}

func minor(t *testing.T, number int) catalog.Minor {
	t.Helper()
	m, ok := catalog.Kubernetes(number)
	if !ok {
		t.Fatalf("no Kubernetes 1.%d", number)
	}
	return m
}

// TestProofNeedsTheDriversPlace: if Kubernetes gives pods only the device files, a node that does not tell where its
// driver is cannot be proven.
func TestProofNeedsTheDriversPlace(t *testing.T) {
	if m, err := Manifest([]Node{{Name: "w1", GPUs: cards("w1", 1, "Tesla K80")}}, minor(t, 6), nil); err == nil {
		t.Errorf("a manifest without libraries:\n%s", m)
	}
}

func TestManifestWithoutGPUs(t *testing.T) {
	if m, err := Manifest([]Node{{Name: "cp1"}}, minor(t, 36), nil); err == nil {
		t.Errorf("a manifest that proves nothing:\n%s", m)
	}
}

// TestJobNamesAreValidAndUnique: for any node name the names of Jobs are valid, unique, and leave room for those of
// pods.
func TestJobNamesAreValidAndUnique(t *testing.T) {
	long := strings.Repeat("a", 60)
	var nodes []Node
	for _, name := range []string{"w", "w-0", "w-0-0", "a.b", "a-b", long + ".x", long + ".y", strings.Repeat("a.", 30) + "z"} {
		nodes = append(nodes, Node{Name: name, GPUs: cards(name, 2, "Tesla T4")})
	}
	manifest, err := Manifest(nodes, minor(t, 36), nil)
	must(t, err)
	subdomain := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	jobs := map[string]bool{}
	for dec := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Metadata struct{ Labels map[string]string }
				}
			}
		}
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := o.Metadata.Name
		if o.Kind != "Job" {
			continue
		}
		if jobs[name] || len(name) > maxJobName || !subdomain.MatchString(name) || o.Spec.Template.Metadata.Labels[jobLabel] != name {
			t.Errorf("job %q, its pods' labels %v", name, o.Spec.Template.Metadata.Labels)
		}
		jobs[name] = true
	}
	if want := len(nodes) * 4; len(jobs) != want {
		t.Errorf("%d Jobs, want %d", len(jobs), want)
	}
}

// TestManifestFollowsTheMinor: the Jobs are the same from 1.14 on; before, pods cannot choose a runtime; up to 1.9 they
// get only devices; and Jobs of 1.6 and 1.7 have no backoffLimit.
func TestManifestFollowsTheMinor(t *testing.T) {
	node := Node{Name: "w1", GPUs: cards("w1", 1, "Tesla K80"), Driver: []machine.DriverMount{{Name: "lib-nvidia-375", From: "/usr/lib/nvidia-375", To: "/usr/local/nvidia/lib"}}}
	for _, c := range []struct {
		from, to               int
		resource               string
		runtime, limit, driver bool
	}{
		{6, 7, "alpha.kubernetes.io/nvidia-gpu", false, false, true},
		{8, 9, "alpha.kubernetes.io/nvidia-gpu", false, true, true},
		{10, 13, "nvidia.com/gpu", false, true, false},
		{14, 37, "nvidia.com/gpu", true, true, false},
	} {
		for number := c.from; number <= c.to; number++ {
			manifest, err := Manifest([]Node{node}, minor(t, number), nil)
			must(t, err)
			for text, want := range map[string]bool{
				" " + c.resource + ": 1\n": true, "runtimeClassName: nvidia": c.runtime, "backoffLimit: 0": c.limit, "path: /usr/lib/nvidia-375\n": c.driver,
			} {
				if strings.Contains(manifest, text) != want {
					t.Errorf("1.%d: %q is there: %t", number, text, !want)
				}
			}
			if strings.Count(manifest, c.resource+":") != 1 {
				t.Errorf("1.%d: not one Job asks for a card:\n%s", number, manifest)
			}
		}
	}
}

// TestImageIsQuoted: text from elsewhere stays one value in the manifest.
func TestImageIsQuoted(t *testing.T) {
	const strange = "reg.lan:5000/cuda: x\n  privileged: true #"
	manifest, err := Manifest([]Node{{Name: "w1", Sample: catalog.Sample{Image: strange}, GPUs: cards("w1", 1, "Tesla T4")}}, minor(t, 36), nil)
	must(t, err)
	dec, found := yaml.NewDecoder(bytes.NewReader([]byte(manifest))), 0
	for {
		var o struct {
			Spec struct {
				Template struct {
					Spec struct{ Containers []map[string]any }
				}
			}
		}
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			found++
			if c["image"] != strange || c["privileged"] != nil {
				t.Errorf("container %v", c)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d containers, want 3", found)
	}
}
