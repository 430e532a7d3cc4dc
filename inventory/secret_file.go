package inventory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// othersMayRead are the bits of a file's mode that let its group or everybody read it.
const othersMayRead fs.FileMode = 0o044

// ReadSecret reads the file of a secret. It must be the user's own, or root's, and nobody else may read it: an inventory
// that somebody else wrote could name any file, and a secret that others can read is none.
func ReadSecret(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := private(path, info, os.Geteuid()); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// checkSecretFile says why the file of a secret is refused. One that cannot be looked at is none of a validation's business:
// the inventory may be checked on another machine than the one that has the secrets.
func checkSecretFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return private(path, info, os.Geteuid())
}

// private says why a file is not one that only this user can read.
func private(path string, info fs.FileInfo, euid int) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a folder", path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int64(stat.Uid) != int64(euid) {
		return fmt.Errorf("%s belongs to the user with the ID %d: a secret is read only from a file of your own; copy it to one, `chmod 600` that, and name it here", path, stat.Uid)
	}
	if mode := info.Mode().Perm(); mode&othersMayRead != 0 {
		return fmt.Errorf("%s can be read by others, its mode is %04o: `chmod 600 %s`", path, mode, path)
	}
	return nil
}
