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
	"os"
	"path/filepath"
	"strings"
	"time"
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
