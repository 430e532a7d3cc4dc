// Package history keeps what runs told, in a folder for each run, and reads it again.
//
// The folder is STATE/kgpu/runs/CLUSTER/RUN, where STATE is $XDG_STATE_HOME or ~/.local/state. In it are
//
//   - events.jsonl: the stream of package event, one event a line, written as the run goes
//   - logs/HOST/STEP.log: what a step printed, and when it began
//   - plan.json: the steps that the run was going to take
//   - result.json: how the run ended; a run that was killed has none
//   - lock: held while the run is at work, gone when it came to its end
//
// Only the user can read them. The newest runs of a cluster are kept (Kept, KeptBytes); older ones go when a run begins.
package history

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// How many runs of a cluster are kept, and how many bytes of them: the newest ones, and in any case the newest that has ended.
const (
	Kept      = 50
	KeptBytes = 1 << 30
)

// The files of a run's folder.
const (
	eventsFile = "events.jsonl"
	planFile   = "plan.json"
	resultFile = "result.json"
	lockFile   = "lock"
	logsFolder = "logs"
)

// Result is how a run ended: the content of result.json.
type Result struct {
	Run       string    `json:"run"`
	Cluster   string    `json:"cluster"`
	Command   string    `json:"command"`   // the command and its arguments
	Inventory string    `json:"inventory"` // path of the file, absolute
	Version   string    `json:"version"`   // of kgpu
	Begun     time.Time `json:"begun"`
	Ended     time.Time `json:"ended"`
	Reason    string    `json:"reason"` // ok, or the ID of the failure
	Exit      int       `json:"exit"`   // exit status of kgpu
	Hosts     []string  `json:"hosts"`
	Cut       string    `json:"cut,omitempty"` // why the folder has not everything that the run told
}

// Root is the folder of all runs of this user.
func Root() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // and what is not absolute counts for nothing
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("where runs are kept: %w", err)
		}
		if !filepath.IsAbs(home) {
			return "", errors.New("where runs are kept: $HOME is no absolute path")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "kgpu", "runs"), nil
}

// longName is longer than the names of hosts and steps are; file systems take 255 bytes, with the suffix.
const longName = 120

// fileName makes a name, which may come from a host, one of a file: it names nothing elsewhere, is not hidden, and belongs
// to no other name. Slashes become plus signs, which IDs of steps do not have.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == '/':
			b.WriteByte('+')
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-' && i > 0, c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	switch {
	case b.Len() == 0:
		return "%"
	case b.Len() > longName:
		sum := sha256.Sum256([]byte(name))
		return b.String()[:longName] + "~" + hex.EncodeToString(sum[:6])
	}
	return b.String()
}

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
