package sshtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Key is a key pair.
type Key struct {
	ssh.Signer
	Private crypto.Signer
}

// NewKey makes an ed25519 key.
func NewKey() Key {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return newKey(private, err)
}

// NewECDSAKey makes a key of another type.
func NewECDSAKey() Key {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return newKey(private, err)
}

func newKey(private crypto.Signer, err error) Key {
	if err != nil {
		panic(err) // there are no random numbers
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		panic(err) // the types above are known to ssh
	}
	return Key{signer, private}
}

// Write stores the private key in a file, as ssh-keygen does.
func (k Key) Write(tb testing.TB, path string) {
	tb.Helper()
	block, err := ssh.MarshalPrivateKey(k.Private, "")
	k.write(tb, path, block, err)
}

// WriteEncrypted is Write with a passphrase.
func (k Key) WriteEncrypted(tb testing.TB, path, passphrase string) {
	tb.Helper()
	block, err := ssh.MarshalPrivateKeyWithPassphrase(k.Private, "", []byte(passphrase))
	k.write(tb, path, block, err)
}

func (k Key) write(tb testing.TB, path string, block *pem.Block, err error) {
	tb.Helper()
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Certify is a user certificate of the authority for key, for an hour.
func Certify(tb testing.TB, authority ssh.Signer, key ssh.PublicKey, user string) *ssh.Certificate {
	tb.Helper()
	return certify(tb, authority, key, ssh.UserCert, user)
}

// CertifyHost is a host certificate.
func CertifyHost(tb testing.TB, authority ssh.Signer, key ssh.PublicKey, host string) *ssh.Certificate {
	tb.Helper()
	return certify(tb, authority, key, ssh.HostCert, host)
}

func certify(tb testing.TB, authority ssh.Signer, key ssh.PublicKey, kind uint32, principal string) *ssh.Certificate {
	tb.Helper()
	cert := &ssh.Certificate{
		Key: key, CertType: kind, KeyId: principal, ValidPrincipals: []string{principal},
		ValidAfter:  uint64(time.Now().Add(-time.Minute).Unix()),
		ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
	}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		tb.Fatal(err)
	}
	return cert
}
