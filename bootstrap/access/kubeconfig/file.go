package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
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

// Update changes a file with change, which is given what is there; nothing, where there is no file. Meanwhile it has
// kubectl's lock. A result that is the same is not written.
func Update(path string, change func([]byte) ([]byte, error)) (err error) {
	path, err = atomicfile.Behind(path)
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
	return atomicfile.Write(path, after, 0o600)
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
