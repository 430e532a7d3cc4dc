// Package atomicfile replaces files of this machine at once: a reader sees the old content or the new, also after a crash.
// A symbolic link stays one: what it leads to is replaced. What is no file, such as /dev/null, stays.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces a file, or makes it. It has the mode then, whatever it had before.
func Write(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, func(f *os.File, _ fs.FileInfo) error { return f.Chmod(mode) })
}

// Update replaces a file, whose mode stays, and whose owner stays where that is allowed. A new one gets the mode.
func Update(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, func(f *os.File, before fs.FileInfo) error {
		if before == nil {
			return f.Chmod(mode)
		}
		if sys, ok := before.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(sys.Uid), int(sys.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
		return f.Chmod(before.Mode().Perm())
	})
}

// Create writes a file that is not there yet, whole or not at all. Its error is fs.ErrExist where something has that name,
// also a link that leads nowhere; that stays as it is.
func Create(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode) // takes the name: what is written comes at once
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), Update(path, data, mode)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Writable reports why Write or Update would not replace a file. It writes nothing.
func Writable(path string) error {
	path, _, err := replaceable(path)
	if err != nil {
		return err
	}
	const write, enter = 2, 1 // of access(2)
	if err := syscall.Access(filepath.Dir(path), write|enter); err != nil {
		return &fs.PathError{Op: "write into", Path: filepath.Dir(path), Err: err}
	}
	dir, pattern := beside(path)
	if _, err := os.Lstat(filepath.Join(dir, pattern+"0123456789")); !errors.Is(err, fs.ErrNotExist) { // a name that is too long
		return err
	}
	return nil
}

// replace writes the file that takes the place of another. like gives it its mode, and maybe its owner; before is what is
// there, nil where nothing is.
func replace(path string, data []byte, like func(f *os.File, before fs.FileInfo) error) error {
	path, before, err := replaceable(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(beside(path)) // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = like(f, before)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what went wrong before says more
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// beside is the folder of a file, and how the names of those that take its place begin.
func beside(path string) (dir, pattern string) {
	return filepath.Dir(path), "." + filepath.Base(path) + "."
}

// syncFolder puts the names in a folder onto the disk, where its file system and its mode let it.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// replaceable is the file that a path leads to, and what is there, unless that is no file.
func replaceable(path string) (string, fs.FileInfo, error) {
	path, err := Behind(path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is no regular file")}
	}
	return path, info, err
}

// maxLinks ends a circle of links.
const maxLinks = 40

// Behind is the file that a path leads to, which need not be there.
func Behind(path string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil { // no link, or nothing at all
			return path, nil
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // .. leads out of the real folder
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}
