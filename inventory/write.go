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
func WriteFile(path string, data []byte) (err error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target = path
	} else if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	owner, group := -1, -1
	switch info, err := os.Stat(target); {
	case err == nil:
		mode = info.Mode().Perm()
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			owner, group = int(sys.Uid), int(sys.Gid)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing %s: %w", path, err), ignoreGone(os.Remove(f.Name())))
		}
	}()
	if err := fill(f, data, mode, owner, group); err != nil {
		return errors.Join(err, ignoreClosed(f.Close()))
	}
	if err := os.Rename(f.Name(), target); err != nil {
		return err
	}
	return syncDir(filepath.Dir(target))
}

// fill writes the file, gives it its mode and owner, and closes it once it is on the disk.
func fill(f *os.File, data []byte, mode fs.FileMode, owner, group int) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chown(owner, group); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
