package bootstrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Every story that plans refuses to change the version of a cluster that runs, whatever is ignored, and doctor says so.
func TestVersionChangeIsRefused(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.joined["cp1"], s.joined["w1"] = true, true
	if o.Inventory.Kubernetes.Version.Minor = 37; !slices.Contains(o.Ignore, string(reason.KubernetesVersionChange)) {
		t.Fatal("not everything is ignored")
	}
	show := func(g *plan.Graph) error { t.Errorf("it is planned: %v", g.Steps); return nil }
	for name, story := range map[string]func(context.Context, Options) error{
		"plan": func(ctx context.Context, o Options) error { _, err := Plan(ctx, o); return err },
		"up":   func(ctx context.Context, o Options) error { return Up(ctx, o, show) },
	} {
		if err := story(t.Context(), o); !errors.Is(err, &reason.Error{ID: reason.KubernetesVersionChange}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.did) > 0 {
		t.Errorf("done: %q", s.did)
	}
}

// To doctor it is a warning: the cluster works.
func TestVersionChangeIsFound(t *testing.T) {
	cp := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt")
	o, _ := fakes(t, &cp.fakeHost)
	o.Events = event.Discard
	o.Inventory.Kubernetes.Version, o.Inventory.Kubernetes.Pin = inventory.Version{Major: 1, Minor: 37, Patch: 1}, inventory.PinnedExact
	d, err := Doctor(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range d.Findings() {
		if f.Severity == doctor.Warning && f.Repair == "" {
			found = append(found, f.Host+" "+f.ID)
		}
	}
	if !slices.Contains(found, "cp1 KUBERNETES_VERSION_CHANGE") {
		t.Errorf("found %q", found)
	}
}

// A worker that is added gets what the cluster runs, though the catalog's newest patch is another by now.
func TestAddWorkerOfTheClustersVersion(t *testing.T) {
	s, o, w1 := growing(t)
	text := strings.Replace(content(t, o.Inventory.Path), "kubernetes: {version: 1.36.3}", "kubernetes: {version: \"1.36\"}", 1)
	if err := os.WriteFile(o.Inventory.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.member = strings.ReplaceAll(s.member, "1.36.3", "1.36.1")
	var shown []string
	show := func(g *plan.Graph) error {
		for _, step := range g.Steps {
			if step.ID == "kube/packages" {
				shown = append(shown, step.Host+" "+step.Input.Values["version"])
			}
		}
		return nil
	}
	inv, err := inventory.Load(o.Inventory.Path, inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	o.Inventory = inv
	if err := AddWorker(t.Context(), o, []inventory.Target{w1}, show); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(shown, []string{"localhost 1.36.1"}) {
		t.Errorf("the packages: %q", shown)
	}
}

// What is rendered says for which version it is.
func TestRenderOfTheClustersVersion(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.joined["cp1"] = true
	s.member = strings.ReplaceAll(s.member, "1.36.3", "1.36.1")
	o.Inventory.Kubernetes.Pin = inventory.NotPinned
	dir := t.TempDir()
	if _, err := Render(t.Context(), o, dir, ""); err != nil {
		t.Fatal(err)
	}
	if text := content(t, filepath.Join(dir, "README.md")); !strings.Contains(text, "Kubernetes 1.36.1") {
		t.Error(text)
	}
}
