package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
)

// Rendering looks at hosts and changes none of them, and says what up does.
func TestRender(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	dir := filepath.Join(t.TempDir(), "out")
	said, err := Render(t.Context(), o, dir, "")
	if err != nil || !strings.Contains(said, filepath.Join(dir, "README.md")) {
		t.Fatalf("%q, %v", said, err)
	}
	if len(s.Did) > 0 {
		t.Errorf("did %q", s.Did)
	}
	for host, script := range map[string]string{"cp1": "init-master", "w1": "init-worker"} {
		steps, err := os.ReadFile(filepath.Join(dir, host, script+".steps"))
		if err != nil || !strings.Contains(string(steps), "-cluster-") {
			t.Errorf("%s: %q, %v", host, steps, err)
		}
	}
	// What is in order already is not in the folders.
	if err := Up(t.Context(), o, func(*graph.Graph) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := Render(t.Context(), o, dir, ""); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", "*-cluster-join")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// Where nothing is left to do there is nothing to run by hand, and no folder that looks as if there were.
func TestRenderNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	said, err := Options{}.render(dir, &graph.Graph{})
	if err != nil || !strings.Contains(said, "nothing was written") || !strings.Contains(said, "--assume RELEASE") || !strings.Contains(said, "debian-12") {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
}

// Nobody is contacted where hosts are assumed to be fresh.
func TestRenderAssumes(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	dir := t.TempDir()
	if _, err := Render(t.Context(), o, dir, "debian-12"); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Events() {
		if e.Kind != event.Warning {
			t.Errorf("told %+v", e)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil || !strings.Contains(string(text), "no host was looked at") {
		t.Errorf("%v:\n%s", err, text)
	}
}
