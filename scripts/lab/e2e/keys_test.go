package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// keyExpires lets the key of Kubernetes' repository on a node be one that has expired, as on a host from before its owner extended
// it: doctor says so, apt refuses the repository, and kgpu up gets the extended one and does nothing else.
func (c *cluster) keyExpires(t *testing.T) {
	const path = "/etc/apt/keyrings/kgpu-kubernetes.gpg"
	c.exec(t, "w1", "base64 -d >"+path+" <<'END'\n"+c.expiredKey(t)+"\nEND\ntouch -d 2001-01-01 "+path)
	if found := c.diagnosed(t, withErrors); !slices.Contains(found, "w1 REPO_KEY_EXPIRED") || slices.Contains(found, "cp1 REPO_KEY_EXPIRED") {
		t.Errorf("found %v", found)
	}
	const update = "apt-get update -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/kgpu-kubernetes.list -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 2>&1 || :"
	if said := c.exec(t, "w1", update); !strings.Contains(said, "EXPKEYSIG") && !strings.Contains(said, "Expired on") {
		t.Errorf("apt says\n%s", said)
	}
	if did := c.did(c.up(t)); !slices.Equal(did, []string{"w1 repo/kubernetes"}) {
		t.Errorf("kgpu up did %q", did)
	}
	if said := c.exec(t, "w1", update); strings.Contains(said, "W:") || strings.Contains(said, "E:") {
		t.Errorf("apt says\n%s", said)
	}
}

// expiredKey is the key that signs the lab's repositories as it was before it was extended, in base64: the lab has its secret.
func (c *cluster) expiredKey(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	gpg := func(args ...string) string {
		t.Helper()
		var said strings.Builder
		cmd := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %q: %v: %s", args, err, said.String())
		}
		return string(out)
	}
	gpg("--import", filepath.Join(filepath.Dir(filepath.Dir(c.env["KGPU_LAB_KEY"])), "pki/signing.gpg"))
	for line := range strings.Lines(gpg("--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "pub" {
			made, err := strconv.ParseInt(f[5], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			at := func(after time.Duration) string { return time.Unix(made, 0).UTC().Add(after).Format("20060102T150405") }
			gpg("--faked-system-time", at(time.Second), "--quick-set-expire", c.env["KGPU_LAB_FINGERPRINT"], at(2*time.Second))
		}
	}
	out, err := exec.Command("bash", "-c", `gpg --homedir "$0" --batch --export | base64`, home).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
