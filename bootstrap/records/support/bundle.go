package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Bundle is the archive. Every file in it goes through its Scrubber. It is safe for concurrent use.
type Bundle struct {
	scrub *Scrubber
	top   string // folder that all files are in
	now   time.Time

	mu   sync.Mutex
	file *os.File
	zip  *gzip.Writer
	tar  *tar.Writer
	have map[string]bool
	err  error // the first one, after which nothing is written
}

// Name is how the bundle of a cluster is called, without its ending.
func Name(cluster string, now time.Time) string {
	return "kgpu-support-" + Folder(cluster) + "-" + now.UTC().Format("20060102-150405")
}

// Create makes the archive for its owner only. A file that is there stays as it is; errors.Is tells fs.ErrExist.
func Create(file, top string, now time.Time, scrub *Scrubber) (*Bundle, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	zip := gzip.NewWriter(f)
	return &Bundle{scrub: scrub, top: top, now: now, file: f, zip: zip, tar: tar.NewWriter(zip), have: map[string]bool{}}, nil
}

// Add puts a file into the archive, scrubbed. A name that is taken gets a number.
func (b *Bundle) Add(name string, content []byte) error {
	content = b.scrub.Scrub(content)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	for stem, i := name, 2; b.have[name]; i++ { // two addresses may become one folder
		name = fmt.Sprintf("%s.%d", stem, i)
	}
	b.have[name] = true
	b.err = b.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(b.top, name), Mode: 0o600, Size: int64(len(content)), ModTime: b.now.Truncate(time.Second),
	})
	if b.err == nil {
		_, b.err = b.tar.Write(content)
	}
	return b.err
}

// Close ends the archive and returns its size.
func (b *Bundle) Close() (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := errors.Join(b.err, b.tar.Close(), b.zip.Close(), b.file.Sync())
	var size int64
	if info, statErr := b.file.Stat(); statErr == nil {
		size = info.Size()
	}
	return size, errors.Join(err, b.file.Close())
}

// Remove gives the archive up.
func (b *Bundle) Remove() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.file.Close(), os.Remove(b.file.Name()))
}

var notInFolders = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Folder makes a name, of a host or a cluster, one of a folder: an IPv6 address has colons, which tools understand otherwise.
func Folder(name string) string {
	if name = strings.TrimLeft(notInFolders.ReplaceAllString(name, "-"), ".-"); name == "" {
		return "unnamed"
	}
	return name
}
