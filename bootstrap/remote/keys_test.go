package remote

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// newECDSAKey makes a key of another type than sshtest.NewKey.
func newECDSAKey(t testing.TB) sshtest.Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return sshtest.KeyOf(private)
}

// writeEncrypted stores a private key in a file, as ssh-keygen does with a passphrase.
func writeEncrypted(t *testing.T, key sshtest.Key, path, passphrase string) {
	t.Helper()
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key.Private, "", []byte(passphrase))
	must(t, err)
	writeFile(t, path, pem.EncodeToMemory(block))
}

// certify is a certificate of the authority for key, for an hour: of a user (ssh.UserCert) or a host (ssh.HostCert) of this name.
func certify(t testing.TB, authority ssh.Signer, key ssh.PublicKey, kind uint32, principal string) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{
		Key: key, CertType: kind, KeyId: principal, ValidPrincipals: []string{principal},
		ValidAfter:  uint64(time.Now().Add(-time.Minute).Unix()),
		ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
	}
	must(t, cert.SignCert(rand.Reader, authority))
	return cert
}
