package prepare

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

func TestWhatATesterAddsJoinsTheInternet(t *testing.T) {
	p := newPreparer(t)
	if err := p.keys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(p.Extra, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(512, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("rajchaudhuri/weave-kube:2.9.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Join(p.Extra, "images/weave.tar"), tag, image); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(p.Extra, "www/example.com/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for where, name := range map[string]string{"debs": "driver", "debs/packages.example/stable/deb": "toolkit"} {
		tree := filepath.Join(p.work(), name)
		if err := p.buildDeb(t.Context(), deb{name: name, version: "1.0", root: tree}, filepath.Join(p.Extra, where)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.extra(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.names(t.Context()); err != nil {
		t.Fatal(err)
	}

	if _, _, err := (store.Store{Dir: p.Registry()}).Manifest(store.Repository{Host: "docker.io", Name: "rajchaudhuri/weave-kube"}, "2.9.0"); err != nil {
		t.Error(err)
	}
	packages, err := os.ReadFile(filepath.Join(p.Site("packages.example"), "stable/deb/Packages"))
	if err != nil || !strings.Contains(string(packages), "Package: toolkit\n") || strings.Contains(string(packages), "driver") {
		t.Errorf("Packages %s, %v", packages, err)
	}
	if _, err := os.Stat(filepath.Join(p.Site("packages.example"), "stable/deb/InRelease")); err != nil {
		t.Error(err)
	}
	names, err := os.ReadFile(p.Names())
	want := []string{"docker.io", "example.com", "index.docker.io", store.Mirror, "packages.example", "registry-1.docker.io"}
	if err != nil || !slices.Equal(strings.Fields(string(names)), want) {
		t.Errorf("names %s, %v, want %v", names, err, want)
	}
	if ids := p.extraDebs(); len(ids) != 1 || !strings.HasPrefix(ids[0], "driver_1.0_amd64.deb ") {
		t.Errorf("packages for the distribution's archive: %v", ids)
	}
}
