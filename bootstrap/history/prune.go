package history

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
)

// prune removes the folders of a cluster's runs but the newest ones, and but those of runs at work. What cannot be removed
// stays until the next run.
func prune(cluster string, kept int) {
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
	for _, name := range names[:max(0, len(names)-kept)] {
		folder := filepath.Join(cluster, name)
		if locked, err := atWork(folder); err == nil && !locked {
			_ = os.RemoveAll(folder)
		}
	}
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
