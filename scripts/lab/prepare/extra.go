package prepare

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// What a tester adds, below the place's Extra folder:
//
//	images/*.tar             docker-save archives, into the registries that their names say
//	debs/*.deb               into the distribution's archive
//	debs/HOST/PATH/*.deb     into a signed flat repository at https://HOST/PATH/ (its key: Release.key)
//	www/HOST/…               served as it is
func (p *preparer) extra(ctx context.Context) error {
	archives, err := filepath.Glob(filepath.Join(p.Extra, "images", "*.tar"))
	if err != nil {
		return err
	}
	for _, a := range archives {
		if err := p.do(ctx, p.extraImages(a)); err != nil {
			return err
		}
	}
	repositories, err := p.extraRepositories()
	if err != nil {
		return err
	}
	for _, path := range repositories {
		if err := p.do(ctx, p.extraRepository(path)); err != nil {
			return err
		}
	}
	return nil
}

func (p *preparer) extraImages(archive string) item {
	base := filepath.Base(archive)
	return item{
		name: "extra images " + base, path: filepath.Join(p.Registry(), "sets", base),
		inputs: []any{identities(archive)}, files: []string{"extra.go"},
		make: func(context.Context) error {
			manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
			if err != nil {
				return err
			}
			for _, d := range manifest {
				for _, tag := range d.RepoTags {
					ref, err := name.NewTag(tag)
					if err != nil {
						return err
					}
					image, err := tarball.ImageFromPath(archive, &ref)
					if err != nil {
						return err
					}
					if err := (store.Store{Dir: p.Registry()}).Put(tag, image); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// extraRepositories are the folders below debs that hold packages, relative to it.
func (p *preparer) extraRepositories() ([]string, error) {
	root := filepath.Join(p.Extra, "debs")
	debs, err := findDebs(root)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, d := range debs {
		dir, err := filepath.Rel(root, filepath.Dir(d))
		if err != nil {
			return nil, err
		}
		if dir != "." {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

func (p *preparer) extraRepository(path string) item {
	from, to := filepath.Join(p.Extra, "debs", path), filepath.Join(p.Cache, "www", path)
	debs, _ := filepath.Glob(filepath.Join(from, "*.deb"))
	return item{
		name: "extra packages " + path, path: to,
		inputs: []any{identities(debs...), p.fingerprints()}, files: []string{"extra.go", "repository.go"},
		make: func(ctx context.Context) error {
			if err := emptyDir(to); err != nil {
				return err
			}
			for _, d := range debs {
				if err := copyFile(d, filepath.Join(to, filepath.Base(d)), 0o644); err != nil {
					return err
				}
			}
			return p.flatRepository(ctx, to)
		},
	}
}

// extraDebs identifies the packages that go into the distribution's archive.
func (p *preparer) extraDebs() []string {
	debs, _ := filepath.Glob(filepath.Join(p.Extra, "debs", "*.deb"))
	return identities(debs...)
}

func (p *preparer) copyExtraDebs(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(p.Extra, "debs", "*.deb"))
	if err != nil {
		return err
	}
	for _, d := range debs {
		if err := copyFile(d, filepath.Join(to, filepath.Base(d)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// identities tells files apart by name, size and time, without reading them.
func identities(paths ...string) []string {
	var all []string
	for _, f := range paths {
		if info, err := os.Stat(f); err == nil {
			all = append(all, fmt.Sprintf("%s %d %d", filepath.Base(f), info.Size(), info.ModTime().UnixNano()))
		}
	}
	return all
}

func findDebs(root string) ([]string, error) {
	var debs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) && path == root {
			return fs.SkipAll
		}
		if err == nil && strings.HasSuffix(path, ".deb") {
			debs = append(debs, path)
		}
		return err
	})
	return debs, err
}
