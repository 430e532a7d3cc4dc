package history

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
)

// prune removes the folders of a cluster's runs but the newest ones, so many and of so many bytes, and but those of runs at
// work and of the newest one that is not. What cannot be removed stays until the next run.
func prune(cluster string, kept int, bytes int64) {
	entries, err := os.ReadDir(cluster)
	if err != nil {
		return
	}
	var names []string
	for _, e := range entries {
		switch folder := filepath.Join(cluster, e.Name()); {
		case !e.IsDir():
		case e.Name()[0] == '.': // of a run that was killed when it began
			if locked, err := atWork(folder); err == nil && !locked {
				_ = os.RemoveAll(folder)
			}
		default:
			names = append(names, e.Name())
		}
	}
	slices.Sort(names) // by time: so runs are named
	slices.Reverse(names)
	rest := false // the newest that is not at work was seen
	for i, name := range names {
		folder := filepath.Join(cluster, name)
		locked, err := atWork(folder)
		bytes -= sizeOf(folder)
		switch {
		case err != nil || locked:
		case rest && (i >= kept || bytes < 0):
			_ = os.RemoveAll(folder)
		default:
			rest = true
		}
	}
}

// sizeOf is the size of the files below a folder, in bytes.
func sizeOf(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is counted as nothing
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// atWork reports whether the run of this folder holds its lock. A folder without a lock is of a run that came to its end.
func atWork(folder string) (bool, error) {
	path := filepath.Join(folder, lockFile)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return false, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if os.IsNotExist(err) { // since
		return false, nil
	}
	if err == nil {
		err = lock.Close()
	}
	return !free, err
}
