package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kgpu.dev/kgpu/scripts/lab/hosts"
)

// host is a machine of the cluster and a way to its sshd.
type host struct {
	name    string
	address netip.Addr     // inside the cluster
	sshd    netip.AddrPort // of its sshd or of the relay in front
	key     ssh.PublicKey  // an ed25519 key, like those of all others
}

// user logs in everywhere.
const user = "ubuntu"

func realHosts(made *hosts.Lab) ([]host, error) {
	all, err := made.Hosts()
	if err != nil {
		return nil, err
	}
	trusted, err := os.ReadFile(made.KnownHosts())
	if err != nil {
		return nil, err
	}
	var list []host
	for _, h := range all {
		address := h.Cables()[0].Address
		key, err := keyOf(trusted, address.String())
		if err != nil {
			return nil, err
		}
		list = append(list, host{name: h.Name, address: address, sshd: netip.AddrPortFrom(address, 22), key: key})
	}
	return list, nil
}

// keyOf finds a host's ed25519 key in a known_hosts file.
func keyOf(file []byte, name string) (ssh.PublicKey, error) {
	for {
		_, names, key, _, rest, err := ssh.ParseKnownHosts(file)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("no ed25519 key of %s", name), err)
		}
		if slices.Contains(names, name) && key.Type() == ssh.KeyAlgoED25519 {
			return key, nil
		}
		file = rest
	}
}

// knownHosts is the known_hosts file of these hosts.
func knownHosts(list []host) []byte {
	var b strings.Builder
	for _, h := range list {
		b.WriteString(knownhosts.Line([]string{h.sshd.String()}, h.key) + "\n")
	}
	return []byte(b.String())
}
