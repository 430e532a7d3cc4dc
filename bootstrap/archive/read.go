package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"filippo.io/age"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// ageMark begins what age encrypts.
const ageMark = "age-encryption.org/"

// maxManifest bounds what is kept in memory of an archive.
const maxManifest = 16 << 20

// Archive is one that was checked.
type Archive struct {
	Manifest
	Path string
	Sum  string // hexadecimal SHA-256 of the manifest: archives with the same sum have the same content

	identities []age.Identity
}

func damaged(format string, args ...any) error {
	return &reason.Error{ID: reason.BackupDamaged, Doing: "checking the archive", Detail: fmt.Sprintf(format, args...)}
}

func newer(format int, by string) error {
	return &reason.Error{ID: reason.BackupNewer, Doing: "checking the archive",
		Detail: fmt.Sprintf("it has the format %d, by kgpu %q; this one reads formats up to %d", format, by, Format)}
}

// Identities reads a file of age identities; an empty name: there is none.
func Identities(file string) ([]age.Identity, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return age.ParseIdentities(f)
}

// Check reads all of an archive and compares every entry with the manifest. It writes nothing.
func Check(path string, identities []age.Identity) (*Archive, error) {
	a := &Archive{Path: path, identities: identities}
	entries, err := a.open()
	if err != nil {
		return nil, err
	}
	defer entries.Close()
	var seen []File
	var text, sum []byte
	for {
		header, err := entries.Next()
		switch {
		case err == io.EOF && text == nil:
			return nil, damaged("it ends before its manifest")
		case err == io.EOF:
			return a, a.compare(text, sum, seen)
		case err != nil:
			return nil, damaged("%v", err)
		}
		file, content, err := summed(entries, header)
		if err != nil {
			return nil, err
		}
		switch header.Name {
		case manifestName:
			text = content
		case sumName:
			sum = content
		default:
			seen = append(seen, file)
		}
	}
}

// summed reads an entry. Of those of the manifest it keeps the content.
func summed(from io.Reader, header *tar.Header) (File, []byte, error) {
	var sum hash.Hash = sha256.New()
	var kept bytes.Buffer
	to := io.Writer(sum)
	if header.Name == manifestName || header.Name == sumName {
		if header.Size > maxManifest {
			return File{}, nil, damaged("its manifest has %d bytes", header.Size)
		}
		to = io.MultiWriter(sum, &kept)
	}
	size, err := io.Copy(to, from)
	if err != nil {
		return File{}, nil, damaged("%s: %v", header.Name, err)
	}
	return File{Name: header.Name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, kept.Bytes(), nil
}

// compare holds what an archive has against its manifest.
func (a *Archive) compare(text, sum []byte, seen []File) (err error) {
	have := sha256.Sum256(text)
	a.Sum = hex.EncodeToString(have[:])
	if string(bytes.TrimSpace(sum)) != a.Sum {
		return damaged("the sum of its manifest is another one")
	}
	if a.Manifest, err = parseManifest(text); err != nil {
		return err
	}
	if len(seen) != len(a.Files) {
		return damaged("it has %d files, and its manifest names %d", len(seen), len(a.Files))
	}
	for i, f := range seen {
		if f != a.Files[i] {
			return damaged("%s is not what the manifest says", f.Name)
		}
	}
	return nil
}

// Extract writes the content of an entry, which must be what the manifest says still.
func (a *Archive) Extract(name string, to io.Writer) error {
	entries, err := a.open()
	if err != nil {
		return err
	}
	defer entries.Close()
	want, _ := a.Find(name)
	for {
		header, err := entries.Next()
		if err != nil {
			return damaged("%s: %v", name, err)
		}
		if header.Name != name {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(to, sum), entries); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
			return damaged("%s has changed since it was checked", name)
		}
		return nil
	}
}

// opened is an archive at its first entry.
type opened struct {
	*tar.Reader
	file *os.File
}

func (o *opened) Close() error { return o.file.Close() }

func (a *Archive) open() (*opened, error) {
	f, err := os.Open(a.Path)
	if err != nil {
		return nil, err
	}
	content, err := a.unsealed(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	zip, err := gzip.NewReader(content)
	if err != nil {
		return nil, errors.Join(damaged("it is no archive of kgpu: %v", err), f.Close())
	}
	return &opened{tar.NewReader(zip), f}, nil
}

// unsealed is what is in the file, decrypted if it is encrypted.
func (a *Archive) unsealed(f io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(f)
	if begin, _ := buffered.Peek(len(ageMark)); string(begin) != ageMark {
		return buffered, nil
	}
	locked := func(detail string) error {
		return &reason.Error{ID: reason.BackupLocked, Doing: "checking the archive", Detail: detail}
	}
	if len(a.identities) == 0 {
		return nil, locked("it is encrypted")
	}
	content, err := age.Decrypt(buffered, a.identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, locked("it is encrypted to other recipients")
	case err != nil:
		return nil, damaged("%v", err)
	}
	return content, nil
}
