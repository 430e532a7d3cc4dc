package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// DefaultPath is the file that kubectl adds new entries to: the first of $KUBECONFIG, or ~/.kube/config.
func DefaultPath() (string, error) {
	for _, path := range filepath.SplitList(os.Getenv("KUBECONFIG")) {
		if path != "" {
			return path, nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".kube", "config"), nil
}

// HasCurrent reports whether one of the files that kubectl reads names a current context: kubectl takes the first that does.
func HasCurrent() bool {
	path, err := DefaultPath()
	if err != nil {
		return false
	}
	for _, path := range append(filepath.SplitList(os.Getenv("KUBECONFIG")), path) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if _, top, err := decode(data); err == nil {
			if current := get(top, "current-context"); current != nil && current.Value != "" {
				return true
			}
		}
	}
	return false
}

// WriteFile writes a file that only its owner can read, whole or not at all. A symbolic link stays one: what it leads to is
// replaced. What is no file, such as /dev/null, stays.
func WriteFile(path string, data []byte) error {
	path, err := replaceable(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Writable reports why WriteFile would not write a file. It writes nothing.
func Writable(path string) error {
	path, err := replaceable(path)
	if err != nil {
		return err
	}
	const write, enter = 2, 1 // of access(2)
	if err := syscall.Access(filepath.Dir(path), write|enter); err != nil {
		return &fs.PathError{Op: "write into", Path: filepath.Dir(path), Err: err}
	}
	return nil
}

// replaceable is the file that a path leads to, unless something else is there.
func replaceable(path string) (string, error) {
	path, err := behindLinks(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is no regular file")}
	}
	return path, nil
}

// maxLinks ends a circle of links.
const maxLinks = 40

// behindLinks is the file that a path leads to, which need not be there.
func behindLinks(path string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil { // no link, or nothing at all
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}

// Update changes a file with change, which is given what is there; nothing, where there is no file. Meanwhile it has
// kubectl's lock. A result that is the same is not written.
func Update(path string, change func([]byte) ([]byte, error)) (err error) {
	path, err = behindLinks(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := lock(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, err := change(before)
	if err != nil || string(after) == string(before) && before != nil {
		return err
	}
	return WriteFile(path, after)
}

// lock is the one of kubectl: a file beside it that must not be there.
// Source: lockFile in https://github.com/kubernetes/client-go/blob/master/tools/clientcmd/loader.go.
func lock(path string) (unlock func() error, err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there: kubectl or another program changes the file just now; if none does, remove it", name)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
}
