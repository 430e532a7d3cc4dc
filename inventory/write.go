package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteFile replaces a file's content at once: a reader sees the old or the new, also after a crash. The mode, and the owner
// where that is allowed, stay; a symbolic link is followed. A new file gets mode 0644.
func WriteFile(path string, data []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target = path
	} else if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	err = fill(f, target, data)
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what went wrong before says more
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return syncDir(filepath.Dir(target))
}

// Writable reports why WriteFile cannot replace a file.
func Writable(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// CreateFile writes a file that is not there yet, whole or not at all. Its error is fs.ErrExist where something has that
// name; that stays as it is.
func CreateFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // takes the name: what is written comes at once
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), WriteFile(path, data)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// fill writes the file that will take the target's place, and closes it once it is on the disk.
func fill(f *os.File, target string, data []byte) error {
	_, err := f.Write(data)
	err = errors.Join(err, likeTarget(f, target), f.Sync())
	return errors.Join(err, f.Close())
}

// likeTarget gives f the mode and the owner of the target.
func likeTarget(f *os.File, target string) error {
	info, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return f.Chmod(0o644)
	}
	if err != nil {
		return err
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(sys.Uid), int(sys.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return f.Chmod(info.Mode().Perm())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
