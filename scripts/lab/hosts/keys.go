package hosts

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// hostKeys makes the three keys that a fresh server's sshd has.
func hostKeys(host string) ([]overlayFile, error) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	r, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		return nil, err
	}
	var files []overlayFile
	for _, k := range []struct {
		kind string
		key  crypto.Signer
	}{{"ed25519", ed}, {"ecdsa", ec}, {"rsa", r}} {
		block, err := ssh.MarshalPrivateKey(k.key, "root@"+host)
		if err != nil {
			return nil, err
		}
		public, err := ssh.NewPublicKey(k.key.Public())
		if err != nil {
			return nil, err
		}
		path := "etc/ssh/ssh_host_" + k.kind + "_key"
		files = append(files,
			overlayFile{path, 0o600, pem.EncodeToMemory(block)},
			overlayFile{path + ".pub", 0o644, ssh.MarshalAuthorizedKey(public)})
	}
	return files, nil
}

// writeTrust writes the known_hosts and ssh_config files for these hosts.
func (l *Lab) writeTrust(hosts []*Host) error {
	var known, config strings.Builder
	for _, h := range hosts {
		addr := h.Cables()[0].Address
		keys, err := filepath.Glob(h.path(systemDir, "upper/etc/ssh/ssh_host_*_key.pub"))
		if err != nil {
			return err
		}
		for _, k := range keys {
			b, err := os.ReadFile(k)
			if err != nil {
				return err
			}
			fmt.Fprintf(&known, "%s,%s %s", addr, h.Name, b)
		}
		fmt.Fprintf(&config, "Host %s\n  HostName %s\n", h.Name, addr)
		if h.Inner {
			config.WriteString("  ProxyJump bastion1\n")
		}
	}
	fmt.Fprintf(&config, "Host *\n  User ubuntu\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n",
		l.ClientKey(), l.KnownHosts())
	if err := process.WriteFile(l.KnownHosts(), []byte(known.String()), 0o644); err != nil {
		return err
	}
	return process.WriteFile(l.SSHConfig(), []byte(config.String()), 0o644)
}
