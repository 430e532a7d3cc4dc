package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// marker is the file in which Write lists the files that it wrote.
const marker = ".kgpu-render"

// Write writes the files below the folder dir, which must be new, empty, or written by Write before. Files that Write
// wrote before and that are not among these are deleted, others are kept. If a file that Write did not make is in the
// way, or the folder has files but no marker, nothing is written, and the error has the reason RENDER_FOLDER_TAKEN.
func Write(dir string, files map[string]graph.File) (err error) {
	if err := os.MkdirAll(dir, 0o755); errors.Is(err, syscall.ENOTDIR) {
		return folderTaken(dir + " is, or is below, a file")
	} else if err != nil {
		return folderTaken(err.Error())
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return folderTaken(err.Error())
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	old, err := written(root, dir)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		_, err := root.Lstat(name)
		if err == nil && !slices.Contains(old, name) {
			return folderTaken(fmt.Sprintf("%s is there, and kgpu did not write it", filepath.Join(dir, name)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// If Write is interrupted, the marker lists both the old and the new files.
	both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(old, names))))
	if err := mark(root, both); err != nil {
		return err
	}
	for _, name := range old {
		if _, stays := files[name]; !stays {
			if err := remove(root, name); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if err := put(root, name, files[name]); err != nil {
			return err
		}
	}
	return mark(root, names)
}

func folderTaken(detail string) error {
	return &reason.Error{ID: reason.RenderFolderTaken, Doing: "rendering", Detail: detail}
}

// written returns the files that the marker lists.
func written(root *os.Root, dir string) ([]string, error) {
	text, err := root.ReadFile(marker)
	if err == nil {
		return slices.DeleteFunc(strings.Split(string(text), "\n"), func(name string) bool { return !filepath.IsLocal(name) }), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there, err := fs.ReadDir(root.FS(), ".")
	if err == nil && len(there) > 0 {
		err = folderTaken(fmt.Sprintf("%s has files that kgpu did not write, such as %s", dir, there[0].Name()))
	}
	return nil, err
}

func mark(root *os.Root, names []string) error {
	return put(root, marker, text(strings.Join(names, "\n")+"\n"))
}

// put writes a file atomically.
func put(root *os.Root, name string, f graph.File) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	temporary := name + ".kgpu-new"
	err := root.WriteFile(temporary, f.Content, 0o600)
	if err == nil {
		err = root.Chmod(temporary, f.Mode)
	}
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.RemoveAll(temporary))
	}
	return nil
}

// remove deletes a file, and the folders above it that become empty.
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if entries, err := fs.ReadDir(root.FS(), dir); err != nil || len(entries) > 0 {
			break
		}
		if err := root.Remove(dir); err != nil {
			return err
		}
	}
	return nil
}
