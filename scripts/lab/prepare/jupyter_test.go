package prepare

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

func TestJupyterImageIsServedUnderEveryName(t *testing.T) {
	p := newPreparer(t)
	root := p.jupyterRoot()
	if err := writeFile(filepath.Join(root.path, "usr/bin/jupyter"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(p.work(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.jupyterImage(root).make(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := store.Store{Dir: p.Registry()}
	var digests []v1.Hash
	for _, n := range jupyterNames {
		host, repository, tag := splitName(t, n)
		d, _, err := s.Manifest(store.Repository{Host: host, Name: repository}, tag)
		if err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		digests = append(digests, d.Digest)
	}
	if len(slices.Compact(digests)) != 1 {
		t.Errorf("the names %v are several images: %v", jupyterNames, digests)
	}
}

var fullName = regexp.MustCompile(`^([^/]+)/(.+):([^:]+)$`)

func splitName(t *testing.T, name string) (host, repository, tag string) {
	t.Helper()
	parts := fullName.FindStringSubmatch(name)
	if parts == nil {
		t.Fatalf("%s is no full name", name)
	}
	return parts[1], parts[2], parts[3]
}

var imageLine = regexp.MustCompile(`(?m)^\s*image: (\S+)`)

func TestExamplesRunWhatTheLabServes(t *testing.T) {
	files, err := filepath.Glob("../../../examples/workloads/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	served := slices.Clone(jupyterNames)
	for _, s := range catalog.Samples() {
		served = append(served, s.Image)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range imageLine.FindAllSubmatch(text, -1) {
			if image := string(m[1]); !slices.Contains(served, image) {
				t.Errorf("%s: %s is not among %v", filepath.Base(f), image, served)
			}
		}
	}
}
