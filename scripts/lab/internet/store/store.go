// Package store keeps the images of the lab's registries in one OCI image layout on disk. An image's full name, registry host
// included, is the layout's usual annotation org.opencontainers.image.ref.name.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const refName = "org.opencontainers.image.ref.name"

// ErrNotFound is what Manifest answers for a name or digest that the store does not have.
var ErrNotFound = errors.New("no such image in the lab")

// Store is the folder of the layout. Readers may use it while one writer adds images.
type Store struct{ Dir string }

// Repository is a registry host and a name in it, such as registry.k8s.io and coredns/coredns.
type Repository struct{ Host, Name string }

func (r Repository) String() string { return r.Host + "/" + r.Name }

// Mirror is a registry with the images of all others, each under the name that it has there, as a company keeps one of its own.
const Mirror = "mirror.example.internal"

// tag is the tag of an image with this full name, and whether the repository has the image.
func (r Repository) tag(full string) (string, bool) {
	host, rest, _ := strings.Cut(full, "/")
	tag, ours := strings.CutPrefix(rest, r.Name+":")
	return tag, ours && (host == canonical(r.Host) || r.Host == Mirror)
}

// aliases are the hosts that clients turn to for another registry's images.
var aliases = map[string]string{"registry-1.docker.io": "docker.io", "index.docker.io": "docker.io", "k8s.gcr.io": "registry.k8s.io"}

// Hosts are the names under which the registries of the stored images are reached.
func (s Store) Hosts() ([]string, error) {
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	hosts := []string{Mirror}
	for _, d := range index.Manifests {
		host, _, _ := strings.Cut(d.Annotations[refName], "/")
		hosts = append(hosts, host)
		for alias, of := range aliases {
			if of == host {
				hosts = append(hosts, alias)
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}

// Put stores an image under a full name such as registry.k8s.io/pause:3.10, in place of an earlier one of that name.
func (s Store) Put(ref string, image v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	if err := layout.Path(s.Dir).WriteImage(image); err != nil {
		return fmt.Errorf("store %s: %w", ref, err)
	}
	descriptor, err := partial.Descriptor(image)
	if err != nil {
		return err
	}
	full := canonical(tag.RegistryStr()) + "/" + tag.RepositoryStr() + ":" + tag.TagStr()
	descriptor.Annotations = map[string]string{refName: full}
	index, err := s.index()
	if err != nil {
		return err
	}
	index.Manifests = append(slices.DeleteFunc(index.Manifests, func(d v1.Descriptor) bool { return d.Annotations[refName] == full }), *descriptor)
	return s.writeIndex(index)
}

// Manifest finds a manifest by tag or by digest.
func (s Store) Manifest(r Repository, reference string) (v1.Descriptor, []byte, error) {
	index, err := s.index()
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	for _, d := range index.Manifests {
		if tag, ours := r.tag(d.Annotations[refName]); ours && (reference == tag || reference == d.Digest.String()) {
			text, err := os.ReadFile(s.Blob(d.Digest))
			return d, text, err
		}
	}
	return v1.Descriptor{}, nil, fmt.Errorf("%s, %s: %w", r, reference, ErrNotFound)
}

// Tags lists the tags of a repository.
func (s Store) Tags(r Repository) ([]string, error) {
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, d := range index.Manifests {
		if tag, ours := r.tag(d.Annotations[refName]); ours {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags, nil
}

// Blob is the file of a blob, whether it is there or not.
func (s Store) Blob(h v1.Hash) string { return filepath.Join(s.Dir, "blobs", h.Algorithm, h.Hex) }

func canonical(host string) string {
	if of, isAlias := aliases[host]; isAlias {
		return of
	}
	return host
}

func (s Store) index() (*v1.IndexManifest, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return &v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}, nil
	}
	if err != nil {
		return nil, err
	}
	index := new(v1.IndexManifest)
	if err := json.Unmarshal(text, index); err != nil {
		return nil, fmt.Errorf("%s/index.json: %w", s.Dir, err)
	}
	return index, nil
}

// writeIndex replaces the index whole, so that a reader sees the old one or the new one.
func (s Store) writeIndex(index *v1.IndexManifest) error {
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion": "1.0.0"}` + "\n"), "index.json": text}
	for _, f := range []string{"oci-layout", "index.json"} {
		path := filepath.Join(s.Dir, f)
		if err := os.WriteFile(path+".new", files[f], 0o644); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}
