package access

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A kubeconfig beside an inventory that is kept in git is told of, until git ignores it.
func TestInGit(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "clusters", "lab")
	must(t, os.MkdirAll(below, 0o755))
	path := filepath.Join(below, "lab.kubeconfig")
	if inGit(path) {
		t.Error("without a repository it is in git")
	}
	marker := filepath.Join(dir, "ran")
	for _, args := range [][]string{{"init", "--quiet"}, {"config", "core.fsmonitor", "touch " + marker + "; false"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if !inGit(path) {
		t.Error("nothing ignores it")
	}
	for _, name := range []string{path, filepath.Join(below, "other.yaml")} {
		ignore := filepath.Join(below, ".gitignore")
		must(t, os.WriteFile(ignore, []byte(ignoreLine(name)+"\n"), 0o644))
		if inGit(name) {
			t.Errorf("%s is not ignored by the line %s", name, ignoreLine(name))
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the folder's was run")
	}
}

func TestKubeconfigInGit(t *testing.T) {
	h, o := newAPIHost(t)
	dir := filepath.Dir(KubeconfigPath(o.Inventory))
	if out, err := exec.Command("git", "-C", dir, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, Kubeconfig(t.Context(), o, KubeconfigOptions{Out: &strings.Builder{}}))
	if said := h.said(); !strings.Contains(said, "git would take it along: put the line `*.kubeconfig` into "+filepath.Join(dir, ".gitignore")) {
		t.Errorf("said %s", said)
	}
}
