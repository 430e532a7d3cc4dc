package prepare

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"kgpu.dev/kgpu/scripts/lab/internet"
)

func (p *preparer) caCertificate() string { return filepath.Join(p.PKI(), internet.AuthorityFile) }
func (p *preparer) signingKey() string    { return filepath.Join(p.PKI(), "signing.gpg") }
func (p *preparer) archiveKey() string    { return filepath.Join(p.PKI(), "archive.gpg") }
func (p *preparer) armoredKey() string    { return filepath.Join(p.PKI(), "archive.asc") }
func (p *preparer) fingerprint() string   { return filepath.Join(p.PKI(), "fingerprint") }

// keys makes what has to stay the same for as long as the cache lives: they are made once, whatever the recipe.
func (p *preparer) keys(ctx context.Context) error {
	for _, k := range []struct {
		name, path string
		make       func(context.Context) error
	}{
		{"ssh key", p.ClientKey(), p.makeClientKey},
		{"certificate authority", p.caCertificate(), func(context.Context) error { return internet.CreateAuthority(p.PKI()) }},
		{"repository signing key", p.fingerprint(), p.makeSigningKey},
	} {
		if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
			return err
		}
		if err := p.do(ctx, item{name: k.name, path: k.path, inputs: []any{k.name}, make: k.make}); err != nil {
			return err
		}
	}
	return nil
}

// fingerprints identify the keys that go into a base.
func (p *preparer) fingerprints() []string {
	var all []string
	for _, path := range []string{p.ClientKey() + ".pub", p.caCertificate(), p.fingerprint()} {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil // not made yet: no stamp can match
		}
		all = append(all, string(text))
	}
	return all
}

func (p *preparer) makeClientKey(ctx context.Context) error {
	for _, f := range []string{p.ClientKey(), p.ClientKey() + ".pub"} {
		if err := os.RemoveAll(f); err != nil {
			return err
		}
	}
	return command{}.run(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kgpu-lab", "-f", p.ClientKey())
}

func (p *preparer) makeSigningKey(context.Context) error {
	config := &packet.Config{Algorithm: packet.PubKeyAlgoRSA, RSABits: 3072, DefaultHash: crypto.SHA512}
	entity, err := openpgp.NewEntity("kgpu lab", "", "lab@example.internal", config)
	if err != nil {
		return err
	}
	var private, public, armored bytes.Buffer
	if err := entity.SerializePrivate(&private, config); err != nil {
		return err
	}
	if err := entity.Serialize(&public); err != nil {
		return err
	}
	w, err := armor.Encode(&armored, openpgp.PublicKeyType, nil)
	if err != nil {
		return err
	}
	if _, err := w.Write(public.Bytes()); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	armored.WriteByte('\n')
	for _, f := range []struct {
		path string
		text []byte
		mode os.FileMode
	}{
		{p.signingKey(), private.Bytes(), 0o600},
		{p.archiveKey(), public.Bytes(), 0o644},
		{p.armoredKey(), armored.Bytes(), 0o644},
		{p.fingerprint(), fmt.Appendf(nil, "%X\n", entity.PrimaryKey.Fingerprint), 0o644},
	} {
		if err := writeFile(f.path, f.text, f.mode); err != nil {
			return err
		}
	}
	return nil
}
