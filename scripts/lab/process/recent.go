package process

import (
	"os"
	"path/filepath"
	"time"
)

// Recent looks at the machine's processes, and so at every host's, again and again.
type Recent struct {
	Proc string // /proc, or a test's

	first map[string]time.Time // when each was seen first
	whole time.Time            // when all were looked at
}

// Changed returns the folders of the processes that may run another program than at the last look: what is young, because most
// programs are started in a process made for them, and every second all of them.
func (r *Recent) Changed() (folders []string) {
	entries, err := os.ReadDir(r.Proc)
	if err != nil {
		return nil
	}
	now := time.Now()
	all := now.Sub(r.whole) >= time.Second
	if all {
		r.whole = now
	}
	first := make(map[string]time.Time, len(r.first))
	for _, e := range entries {
		name := e.Name()
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		since, known := r.first[name]
		if !known {
			since = now
		}
		first[name] = since
		if all || now.Sub(since) < 2*time.Second {
			folders = append(folders, filepath.Join(r.Proc, name))
		}
	}
	r.first = first
	return folders
}
