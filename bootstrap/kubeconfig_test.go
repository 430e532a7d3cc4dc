package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/inventory"
)

// TestKubeconfigIsReplacedWhole holds that nothing of a longer file before it stays behind the end, and that others cannot
// read it, whatever the mode was.
func TestKubeconfigIsReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.kubeconfig")
	if err := os.WriteFile(path, []byte(strings.Repeat("an older, longer file\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := kubeconfig.WriteFile(path, []byte("new\n")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "new\n" {
		t.Errorf("%v, %q", err, got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := kubeconfig.WriteFile(filepath.Join(path, "no-folder", "x"), nil); err == nil {
		t.Error("a kubeconfig was written where there is no folder")
	}
}

// TestRewriteKubeconfig holds that the file tells what it was made of, and so that it is fetched anew for another cluster.
func TestRewriteKubeconfig(t *testing.T) {
	const conf = "apiVersion: v1\nkind: Config\nclusters: [{name: kubernetes, cluster: {server: \"https://10.0.0.4:6443\"}}]\n" +
		"users: [{name: kubernetes-admin, user: {client-key-data: aGVsbG8=}}]\n"
	path := filepath.Join(t.TempDir(), "lab.kubeconfig")
	out, err := rewriteKubeconfig([]byte(conf), "lab", inventory.Host{Address: "10.0.0.4"})
	if err != nil {
		t.Fatal(err)
	}
	if err := kubeconfig.WriteFile(path, out); err != nil {
		t.Fatal(err)
	}
	if sum := sourceOf(path); len(sum) != 64 {
		t.Errorf("it was made of %q", sum)
	}
	if _, err := rewriteKubeconfig([]byte("clusters: []\n"), "lab", inventory.Host{}); err == nil {
		t.Error("a file without a cluster was taken")
	}
}
