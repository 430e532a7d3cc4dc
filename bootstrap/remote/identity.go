package remote

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/inventory"
)

// identity is a private key file and what lies next to it.
type identity struct {
	path   string
	signer ssh.Signer       // nil: the private key could not be read
	public ssh.PublicKey    // known even where the private key could not be read; nil: not known either
	cert   *ssh.Certificate // nil: none
	err    error            // why there is no signer or no certificate
}

// matches reports whether key, which may be a certificate, is this identity's.
func (id *identity) matches(key ssh.PublicKey) bool {
	return id.public != nil && sameKey(id.public, key)
}

// signers are the certificate, which comes first, and the bare key, made with s, which holds the private key.
func (id *identity) signers(s ssh.Signer) []ssh.Signer {
	if id.cert != nil {
		if withCert, err := ssh.NewCertSigner(id.cert, s); err == nil {
			return []ssh.Signer{withCert, s}
		}
	}
	return []ssh.Signer{s}
}

// keyring reads each private key once: decrypting one takes a while, and a hundred hosts may share it.
type keyring struct {
	mu     sync.Mutex
	loaded map[string]func() *identity
}

// load reads the private key at path. resolve is called for the passphrase if the key is encrypted; its error ends up
// in the identity, like any other.
func (k *keyring) load(path string, passphrase inventory.Secret, resolve func(inventory.Secret) (string, error)) *identity {
	k.mu.Lock()
	if k.loaded == nil {
		k.loaded = map[string]func() *identity{}
	}
	key := path + "\x00" + passphrase.String()
	load, ok := k.loaded[key]
	if !ok {
		load = sync.OnceValue(func() *identity { return readIdentity(path, passphrase, resolve) })
		k.loaded[key] = load
	}
	k.mu.Unlock()
	return load()
}

func readIdentity(path string, passphrase inventory.Secret, resolve func(inventory.Secret) (string, error)) *identity {
	id := &identity{path: path}
	id.signer, id.err = readPrivateKey(path, passphrase, resolve)
	if id.signer != nil {
		id.public = id.signer.PublicKey()
	} else {
		id.public = publicKeyOf(path, id.err)
	}
	cert, err := readCertificate(path + "-cert.pub")
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		id.err = errors.Join(id.err, err)
	case !id.matches(cert.Key):
		id.err = errors.Join(id.err, fmt.Errorf("the certificate %s-cert.pub is for another key", path))
	default:
		id.cert = cert
	}
	return id
}

func readPrivateKey(path string, passphrase inventory.Secret, resolve func(inventory.Secret) (string, error)) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	missing, encrypted := errors.AsType[*ssh.PassphraseMissingError](err)
	if !encrypted || passphrase.IsZero() {
		return signer, err
	}
	secret, err := resolve(passphrase)
	if err != nil {
		return nil, err
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(secret))
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, errors.Join(fmt.Errorf("the passphrase from %s is wrong", passphrase), missing)
	}
	return signer, err
}

// publicKeyOf finds the public key of a private key that could not be read, for the agent may hold it.
func publicKeyOf(path string, err error) ssh.PublicKey {
	if missing, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok && missing.PublicKey != nil {
		return missing.PublicKey
	}
	for _, p := range []string{path + ".pub", path} { // ssh takes a public key's path too, with the private one in the agent
		if data, err := os.ReadFile(p); err == nil {
			if key, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
				return key
			}
		}
	}
	return nil
}

func readCertificate(path string) (*ssh.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	cert, ok := key.(*ssh.Certificate)
	if !ok {
		return nil, fmt.Errorf("%s is not a certificate", path)
	}
	return cert, nil
}

// trouble says in one line why a key cannot be used.
func (id *identity) trouble() string {
	var missing *ssh.PassphraseMissingError
	var file *os.PathError
	switch err := id.err; {
	case errors.As(err, &file):
		return file.Err.Error()
	case errors.As(err, &missing) && err == error(missing):
		return "it is encrypted, and no `passphrase:` refers to its passphrase"
	default:
		line, _, _ := strings.Cut(err.Error(), "\n")
		return strings.TrimPrefix(line, "ssh: ")
	}
}
