package archive

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
)

// Writer writes an archive. It has another name, and is for its owner only, until it is whole.
type Writer struct {
	path   string
	file   *os.File
	sealed io.WriteCloser // age's; nil: it is not encrypted
	zip    *gzip.Writer
	tar    *tar.Writer
	now    time.Time
	files  []File
}

// Recipients reads age recipients, such as age1….
func Recipients(lines []string) (out []age.Recipient, err error) {
	for _, line := range lines {
		r, err := age.ParseX25519Recipient(line)
		if err != nil {
			return nil, fmt.Errorf("%q is no recipient of age, which begins with age1: %w", line, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// Create begins an archive. A file that is there stays as it is: errors.Is tells fs.ErrExist.
func Create(path string, to []age.Recipient, now time.Time) (*Writer, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, file: f, now: now.Truncate(time.Second)}
	under := io.Writer(f)
	if len(to) > 0 {
		if w.sealed, err = age.Encrypt(f, to...); err != nil {
			return nil, errors.Join(err, w.Remove())
		}
		under = w.sealed
	}
	w.zip = gzip.NewWriter(under)
	w.tar = tar.NewWriter(w.zip)
	return w, nil
}

// Add puts a file of this size into the archive. fill writes its content. sum is what its SHA-256 sum must be; empty: it is not known.
func (w *Writer) Add(name string, size int64, sum string, fill func(io.Writer) error) error {
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: size, ModTime: w.now}); err != nil {
		return err
	}
	hash := sha256.New()
	if err := fill(io.MultiWriter(w.tar, hash)); err != nil {
		return err
	}
	have := hex.EncodeToString(hash.Sum(nil))
	if sum != "" && have != sum {
		return fmt.Errorf("%s has the sum %s, not %s", name, have, sum)
	}
	w.files = append(w.files, File{Name: name, Size: size, SHA256: have})
	return w.tar.Flush() // an error: fewer bytes came
}

// AddBytes puts a small file into the archive.
func (w *Writer) AddBytes(name string, content []byte) error {
	return w.Add(name, int64(len(content)), "", func(to io.Writer) error {
		_, err := to.Write(content)
		return err
	})
}

// Close ends the archive with its manifest, and gives it its name. It returns its size.
func (w *Writer) Close(m Manifest) (int64, error) {
	m.Format, m.Made, m.Files = Format, w.now.UTC(), w.files
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return 0, errors.Join(err, w.Remove())
	}
	sum := sha256.Sum256(text)
	err = errors.Join(w.AddBytes(manifestName, text), w.AddBytes(sumName, []byte(hex.EncodeToString(sum[:])+"\n")), w.tar.Close(), w.zip.Close())
	if w.sealed != nil {
		err = errors.Join(err, w.sealed.Close())
	}
	err = errors.Join(err, w.file.Sync())
	info, noSize := w.file.Stat()
	if err = errors.Join(err, noSize); err != nil {
		return 0, errors.Join(err, w.Remove())
	}
	if err := errors.Join(w.file.Close(), os.Rename(w.file.Name(), w.path)); err != nil {
		return 0, errors.Join(err, os.Remove(w.file.Name()))
	}
	return info.Size(), nil
}

// Remove gives the archive up.
func (w *Writer) Remove() error {
	_ = w.file.Close()
	if err := os.Remove(w.file.Name()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
