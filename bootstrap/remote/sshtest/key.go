package sshtest

import (
	"crypto"
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Key is a key pair.
type Key struct {
	ssh.Signer
	Private crypto.Signer
}

// NewKey makes an ed25519 key.
func NewKey() Key {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // there are no random numbers
	}
	return KeyOf(private)
}

// KeyOf is the pair of a private key.
func KeyOf(private crypto.Signer) Key {
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		panic(err) // it is of a type that ssh does not know
	}
	return Key{signer, private}
}

// Write stores the private key in a file, as ssh-keygen does.
func (k Key) Write(tb testing.TB, path string) {
	tb.Helper()
	block, err := ssh.MarshalPrivateKey(k.Private, "")
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
