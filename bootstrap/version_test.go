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

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/doctor"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Every story that plans refuses to bring a cluster back to an older version, whatever is ignored, and doctor says so.
func TestVersionChangeIsRefused(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.Joined["cp1"], s.Joined["w1"] = true, true
	if o.Inventory.Kubernetes.Version.Minor = 35; !slices.Contains(o.Ignore, string(reason.KubernetesVersionChange)) {
		t.Fatal("not everything is ignored")
	}
	show := func(g *graph.Graph) error { t.Errorf("it is planned: %v", g.Steps); return nil }
	for name, story := range map[string]func(context.Context, Options) error{
		"plan": func(ctx context.Context, o Options) error { _, err := Plan(ctx, o); return err },
		"up":   func(ctx context.Context, o Options) error { return Up(ctx, o, show) },
	} {
		if err := story(t.Context(), o); !errors.Is(err, &reason.Error{ID: reason.KubernetesVersionChange}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.Did) > 0 {
		t.Errorf("done: %q", s.Did)
	}
}

// To doctor it is a warning: the cluster works.
func TestVersionChangeIsFound(t *testing.T) {
	cp := newExamined(t, "cp1", "control-plane.txt", "healthy-control.txt")
	o, _ := fakes(t, &cp.fakeHost)
	o.Events = event.Discard
	o.Inventory.Kubernetes.Version, o.Inventory.Kubernetes.Pin = inventory.Version{Major: 1, Minor: 35, Patch: 1}, inventory.PinnedExact
	d, err := look.Doctor(t.Context(), o.Options, nil, o.Ignore)
	must(t, err)
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
	must(t, os.WriteFile(o.Inventory.Path, []byte(text), 0o600))
	s.Member = strings.ReplaceAll(s.Member, "1.36.3", "1.36.1")
	var shown []string
	show := func(g *graph.Graph) error {
		for _, step := range g.Steps {
			if step.ID == "kube/packages" {
				shown = append(shown, step.Host+" "+step.Input.Values["version"])
			}
		}
		return nil
	}
	inv, err := inventory.Load(o.Inventory.Path, inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	o.Inventory = inv
	must(t, AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, show))
	if !slices.Equal(shown, []string{"localhost 1.36.1"}) {
		t.Errorf("the packages: %q", shown)
	}
}

// What is rendered says for which version it is.
func TestRenderOfTheClustersVersion(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.Joined["cp1"] = true
	s.Member = strings.ReplaceAll(s.Member, "1.36.3", "1.36.1")
	o.Inventory.Kubernetes.Pin = inventory.NotPinned
	dir := t.TempDir()
	if _, err := Render(t.Context(), o, dir, ""); err != nil {
		t.Fatal(err)
	}
	if text := content(t, filepath.Join(dir, "README.md")); !strings.Contains(text, "Kubernetes 1.36.1") {
		t.Error(text)
	}
}

// installed are the versions of the packages that a plan installs, by host.
func installed(g *graph.Graph) map[string]string {
	out := map[string]string{}
	for _, step := range g.Steps {
		if step.ID == "kube/packages" {
			out[step.Host] = step.Input.Values["version"]
		}
	}
	return out
}

// A new cluster gets the newest patch that all hosts can have, unless the inventory fixes one; who asked for more is refused before
// anything is touched. What a host says of another minor is no answer.
func TestNewClusterOfTheNewestPatch(t *testing.T) {
	day := catalog.AsOf.Format(time.DateOnly)
	for name, c := range map[string]struct {
		pin     inventory.Pin
		offers  map[string]string
		want    string // of both hosts; empty: refused
		said    string // in the plan, or of the refusal
		advised string
	}{
		"newer than the catalog's": {inventory.PinnedMinor, map[string]string{"cp1": "offers=1.36 yes 1.36.5 1.36.4 1.36.3\n", "w1": "offers=1.36 yes 1.36.4 1.36.5\n"},
			"1.36.5", "Kubernetes 1.36.5, the newest patch that pkgs.k8s.io offers; kgpu was proven with 1.36.3, by " + day, ""},
		"a worker that is behind": {inventory.NotPinned, map[string]string{"cp1": "offers=1.36 yes 1.36.5 1.36.4\n", "w1": "offers=1.36 yes 1.36.4\n"},
			"1.36.4", "Kubernetes 1.36.4, the newest patch that pkgs.k8s.io offers that all hosts have there; ", ""},
		"nobody knows": {inventory.PinnedMinor, map[string]string{"cp1": "offers=1.36 no it is not signed\n"},
			"1.36.3", "Kubernetes 1.36.3, of kgpu's catalog of " + day + ": which patches pkgs.k8s.io offers is not known (cp1: it is not signed)", ""},
		"an exact one": {inventory.PinnedExact, map[string]string{"cp1": "offers=1.36 yes 1.36.5 1.36.3\n"}, "1.36.3", "", ""},
		"an exact one that is not there": {inventory.PinnedExact, map[string]string{"cp1": "offers=1.36 yes 1.36.5 1.36.4\n"},
			"", "cp1: preflight: its repository does not have kubelet, kubeadm and kubectl 1.36.3; the newest that it has are 1.36.5, 1.36.4 [PACKAGE_MISSING]",
			"inventory.yaml:1:23: take one of these, or 1.36 for the newest patch that all hosts can have"},
		"nothing in common": {inventory.PinnedMinor, map[string]string{"cp1": "offers=1.36 yes 1.36.5\n", "w1": "offers=1.36 yes 1.36.2\n"},
			"", "w1: preflight: its repository does not have kubelet, kubeadm and kubectl 1.36.5; the newest that it has are 1.36.2", "all hosts get one version"},
		"a host that lies": {inventory.PinnedMinor, map[string]string{"cp1": "offers=1.36 yes 1.37.1\n"}, "", "HOST_FACTS_FAILED", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1")
			s.Offers = c.offers
			o.Inventory.Kubernetes.Pin = c.pin
			o.Ignore = slices.DeleteFunc(o.Ignore, func(id string) bool { return id == string(reason.PackageMissing) })
			g, err := Plan(t.Context(), o)
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), c.said) {
					t.Fatalf("%v", err)
				}
				if e := (*reason.Error)(nil); !errors.As(err, &e) || !strings.HasPrefix(e.AdviceLine(), c.advised) {
					t.Errorf("advised: %s", e.AdviceLine())
				}
				return
			}
			must(t, err)
			if got := installed(g); len(got) != 2 || got["cp1"] != c.want || got["w1"] != c.want {
				t.Errorf("installs %v", got)
			}
			if !strings.HasPrefix(g.Kubernetes, c.said) || (c.said == "") != (g.Kubernetes == "") {
				t.Errorf("it says %q", g.Kubernetes)
			}
		})
	}
}

// A run that goes on makes the cluster of the version that it began with: what was planned when it looks again is the same.
func TestOneVersionForTheWholeRun(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.Offers = map[string]string{"cp1": "offers=1.36 yes 1.36.5\n", "w1": "offers=1.36 yes 1.36.5\n"}
	o.Inventory.Kubernetes.Pin = inventory.NotPinned
	s.Member = strings.ReplaceAll(s.Member, "1.36.3", "1.36.5")
	var shown []map[string]string
	must(t, Up(t.Context(), o, func(g *graph.Graph) error { shown = append(shown, installed(g)); return nil }))
	for _, got := range shown {
		for host, v := range got {
			if v != "1.36.5" {
				t.Errorf("%s: %s", host, v)
			}
		}
	}
	if len(shown) == 0 || len(shown[0]) != 2 {
		t.Errorf("%v", shown)
	}
}

// A worker gets what its cluster runs, and is refused where its repository does not have that.
func TestAddWorkerWithoutTheClustersPatch(t *testing.T) {
	s, o, w1 := growing(t)
	o.Ignore = slices.DeleteFunc(o.Ignore, func(id string) bool { return id == string(reason.PackageMissing) })
	s.Offers = map[string]string{"w1": "offers=1.36 yes 1.36.5\n"}
	err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(g *graph.Graph) error { t.Errorf("it is planned: %v", installed(g)); return nil })
	if e := (*reason.Error)(nil); !errors.As(err, &e) || e.ID != reason.PackageMissing || e.Host != "localhost" || !strings.HasPrefix(e.AdviceLine(), "a new node gets the version of its cluster") {
		t.Errorf("%v", err)
	}
	if len(s.Did) > 0 {
		t.Errorf("done: %q", s.Did)
	}
}
