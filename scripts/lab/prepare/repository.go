package prepare

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// flatRepository indexes and signs the packages that lie below dir, as apt wants a repository whose suite ends in "/".
func (p *preparer) flatRepository(ctx context.Context, dir string, release ...string) error {
	packages, err := command{dir: dir}.output(ctx, "apt-ftparchive", "packages", ".")
	if err != nil {
		return err
	}
	if err := writePackages(dir, packages); err != nil {
		return err
	}
	if err := p.signRelease(ctx, dir, release...); err != nil {
		return err
	}
	return copyFile(p.armoredKey(), filepath.Join(dir, "Release.key"), 0o644)
}

// suite is a distribution folder below an archive's root: its first component offers the packages of pool, the others nothing.
type suite struct {
	name       string
	components []string
	pool       string // relative to the archive's root; empty for a suite without packages
}

// archive indexes and signs the suites of an archive shaped like a distribution's.
func (p *preparer) archive(ctx context.Context, root string, suites ...suite) error {
	for _, s := range suites {
		var packages []byte
		if s.pool != "" {
			var err error
			if packages, err = (command{dir: root}).output(ctx, "apt-ftparchive", "packages", s.pool); err != nil {
				return err
			}
		}
		dists := filepath.Join(root, "dists", s.name)
		for i, c := range s.components {
			if i > 0 {
				packages = nil
			}
			if err := writePackages(filepath.Join(dists, c, "binary-amd64"), packages); err != nil {
				return err
			}
		}
		fields := []string{"Suite=" + s.name, "Codename=" + s.name, "Architectures=amd64", "Components=" + strings.Join(s.components, " ")}
		if err := p.signRelease(ctx, dists, fields...); err != nil {
			return err
		}
	}
	return nil
}

func writePackages(dir string, text []byte) error {
	if err := writeFile(filepath.Join(dir, "Packages"), text, 0o644); err != nil {
		return err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "Packages.gz"), packed.Bytes(), 0o644)
}

// signRelease writes Release, InRelease and Release.gpg; the fields are those of apt-ftparchive's APT::FTPArchive::Release.
func (p *preparer) signRelease(ctx context.Context, dir string, fields ...string) error {
	for _, old := range []string{"Release", "InRelease", "Release.gpg", "Release.key"} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return err
		}
	}
	var args []string
	for _, f := range append([]string{"Origin=kgpu lab", "Label=kgpu lab"}, fields...) {
		args = append(args, "-o", "APT::FTPArchive::Release::"+f)
	}
	release, err := command{dir: dir}.output(ctx, "apt-ftparchive", append(args, "release", ".")...)
	if err != nil {
		return err
	}
	signed, detached, err := p.sign(release)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"Release": release, "InRelease": signed, "Release.gpg": detached} {
		if err := writeFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sign makes InRelease and Release.gpg of a Release, whose lines neither begin with a dash nor end in blanks.
func (p *preparer) sign(text []byte) (inline, detached []byte, err error) {
	private, err := os.Open(p.signingKey())
	if err != nil {
		return nil, nil, err
	}
	defer private.Close()
	keys, err := openpgp.ReadKeyRing(private)
	if err != nil {
		return nil, nil, err
	}
	signer := keys[0]
	config := &packet.Config{DefaultHash: crypto.SHA512}
	var signed, apart bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&apart, signer, bytes.NewReader(text), config); err != nil {
		return nil, nil, err
	}
	apart.WriteByte('\n')
	// The library's own clear signer leaves out the armor's checksum, and GnuPG before 2.4 then finds no signature. The signed text
	// of a clear-signed message does not include its last line end.
	fmt.Fprintf(&signed, "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n%s", text)
	if err := openpgp.ArmoredDetachSignText(&signed, signer, bytes.NewReader(bytes.TrimSuffix(text, []byte("\n"))), config); err != nil {
		return nil, nil, err
	}
	signed.WriteByte('\n')
	return signed.Bytes(), apart.Bytes(), nil
}
