package hosts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listen is where the lab's internet listens.
func (l *Lab) Listen() []netip.Addr { return []netip.Addr{l.Gateway()} }

// Env prints what a client of this lab needs, as lines for a shell's eval.
// What is not prepared is left out.
func (l *Lab) Env() error {
	vars := [][2]string{{"KGPU_LAB_KEY", l.ClientKey()}, {"KGPU_LAB_KNOWN_HOSTS", l.KnownHosts()}, {"KGPU_LAB_SSH_CONFIG", l.SSHConfig()}}
	fingerprint, err := os.ReadFile(filepath.Join(l.PKI(), "fingerprint"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		vars = append(vars, [2]string{"KGPU_LAB_FINGERPRINT", strings.TrimSpace(string(fingerprint))})
	}
	archives, err := filepath.Glob(filepath.Join(l.Site("github.com"), "Mirantis/cri-dockerd/releases/download/*/*.tgz"))
	if err != nil {
		return err
	}
	for _, path := range archives {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		vars = append(vars, [2]string{"KGPU_LAB_CRI_DOCKERD_SHA256", fmt.Sprintf("%x", sha256.Sum256(b))})
	}
	kubectls, err := filepath.Glob(l.Bin("kubernetes", "*/kubectl"))
	if err != nil {
		return err
	}
	if len(kubectls) > 0 {
		vars = append(vars, [2]string{"KUBECTL", slices.Max(kubectls)}) // the newest: two digits of a minor sort like numbers
	}
	for _, v := range vars {
		if _, err := fmt.Fprintf(l.Out, "export %s='%s'\n", v[0], v[1]); err != nil {
			return err
		}
	}
	return nil
}
