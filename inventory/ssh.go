package inventory

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func sshKeys() keys[SSH] {
	return keys[SSH]{
		"user":          value(func(s *SSH) *string { return &s.User }, userName),
		"port":          integer(func(s *SSH) *int { return &s.Port }, 1, 65535),
		"key":           pathValue(func(s *SSH) *string { return &s.Key }),
		"passphrase":    secretValue(func(s *SSH) *Secret { return &s.Passphrase }),
		"agent":         boolean(func(s *SSH) *bool { return &s.Agent }),
		"knownHosts":    pathValue(func(s *SSH) *string { return &s.KnownHosts }),
		"hostKeyPolicy": value(func(s *SSH) *HostKeyPolicy { return &s.HostKeyPolicy }, oneOf(Strict, AcceptNew)),
		"hostKey":       value(func(s *SSH) *string { return &s.HostKey }, hostKey),
		"sudoPassword":  secretValue(func(s *SSH) *Secret { return &s.SudoPassword }),
		"bastion":       func(*decoder, *SSH, *yaml.Node, string) {}, // decoded last: it inherits from the others
	}
}

// ssh decodes an ssh section onto the defaults that are in s already.
func (d *decoder) ssh(s *SSH, n *yaml.Node, path string) {
	mapping(d, n, path, sshKeys(), s)
	d.bastion(s, path)
}

func bastionKeys() keys[Bastion] {
	ks := keys[Bastion]{"address": value(func(b *Bastion) *string { return &b.Address }, address)}
	for name, decode := range sshKeys() {
		if name != "sudoPassword" { // nothing runs on a bastion
			ks[name] = func(d *decoder, b *Bastion, n *yaml.Node, path string) { decode(d, &b.SSH, n, path) }
		}
	}
	return ks
}

// bastion decodes the bastion of the ssh settings at path. It takes over who logs in and how keys are checked; what belongs to
// one machine (port, host key, the way there) it does not. "none" undoes a default.
func (d *decoder) bastion(s *SSH, path string) {
	path = join(path, "bastion")
	n, ok := d.nodes[path]
	if !ok {
		return
	}
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		s.Bastion = nil
		return
	}
	b := &Bastion{SSH: SSH{
		User: s.User, Key: s.Key, Passphrase: s.Passphrase, Agent: s.Agent, KnownHosts: s.KnownHosts, HostKeyPolicy: s.HostKeyPolicy,
	}}
	mapping(d, n, path, bastionKeys(), b)
	if _, ok := d.nodes[join(path, "address")]; !ok && n.Kind == yaml.MappingNode || isNull(n) {
		d.fail(n, path, "address is missing")
	}
	d.bastion(&b.SSH, path)
	s.Bastion = b
}

// pathValue is a key with the path of a file here: ~ is the home directory, relative paths start at the inventory.
func pathValue[T any](field func(*T) *string) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) {
		s, ok := d.text(n, path)
		if !ok {
			return
		}
		s, err := d.localPath(s)
		if err != nil {
			d.failHint(n, path, err)
		}
		*field(into) = s
	}
}

func (d *decoder) localPath(s string) (string, error) {
	switch {
	case s == "":
		return "", errors.New("is empty")
	case strings.ContainsRune(s, 0):
		return "", errors.New("is not a path")
	case s == "~" || strings.HasPrefix(s, "~/"):
		home, ok := d.env("HOME")
		if !ok {
			return "", fmt.Errorf("%q: the environment variable HOME is not set", s)
		}
		return filepath.Join(home, s[1:]), nil
	case strings.HasPrefix(s, "~"):
		return "", fmt.Errorf("%q: only ~/ is known, write the directory out", s)
	case filepath.IsAbs(s):
		return s, nil
	default:
		return filepath.Join(d.dir(), s), nil
	}
}

// secretValue is a key with a reference to a secret. What stands there is not printed: it may be the secret.
func secretValue[T any](field func(*T) *Secret) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode {
			d.fail(n, path, "must be a reference, ${NAME} or file:PATH, is %s", kindName(n))
			return
		}
		s, err := ParseSecret(n.Value)
		if err != nil {
			d.failHint(n, path, err)
			return
		}
		if file, ok := strings.CutPrefix(s.ref, filePrefix); ok {
			local, err := d.localPath(file)
			if err == nil {
				err = checkSecretFile(local)
			}
			if err != nil {
				d.failHint(n, path, err)
			}
			s.ref = filePrefix + local
		}
		*field(into) = s
	}
}
