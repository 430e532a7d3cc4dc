package prepare

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is an image layer in a plain tar file. It is not compressed: it travels over a bridge on one machine, and packing and
// unpacking would be most of the time of a pull.
type layer struct {
	path string
	hash v1.Hash
	size int64
}

func (l layer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l layer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l layer) Size() (int64, error)                 { return l.size, nil }
func (l layer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
func (l layer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l layer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }

// packed is the time on everything in a layer, so that the same content has the same digest.
var packed = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// packLayer writes the tree below root as a layer into the file path. Everything in it belongs to root.
func packLayer(root, path string) (layer, error) {
	out, err := os.Create(path)
	if err != nil {
		return layer{}, err
	}
	defer out.Close()
	hash := sha256.New()
	archive := tar.NewWriter(io.MultiWriter(out, hash))
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		return addToTar(archive, root, file, entry)
	})
	if err != nil {
		return layer{}, err
	}
	if err := archive.Close(); err != nil {
		return layer{}, err
	}
	info, err := out.Stat()
	if err != nil {
		return layer{}, err
	}
	return layer{path: path, size: info.Size(), hash: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}}, out.Close()
}

func addToTar(archive *tar.Writer, root, file string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(file); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if header.Name, err = filepath.Rel(root, file); err != nil {
		return err
	}
	if entry.IsDir() {
		header.Name += "/"
	}
	header.ModTime, header.AccessTime, header.ChangeTime = packed, time.Time{}, time.Time{}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(archive, in)
	return err
}
