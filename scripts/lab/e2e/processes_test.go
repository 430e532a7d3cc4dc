package e2e

import (
	"os"
	"path/filepath"
	"time"
)

// processes looks at those of the machine, and so of every host, again and again.
type processes struct {
	first map[string]time.Time // when each was seen first
	whole time.Time            // when all were looked at
}

// changed returns the folders in /proc of the processes that may run another program than at the last look: what is young,
// because most programs are started in a process made for them, and every second all of them.
func (p *processes) changed() (folders []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	now := time.Now()
	all := now.Sub(p.whole) >= time.Second
	if all {
		p.whole = now
	}
	first := make(map[string]time.Time, len(p.first))
	for _, e := range entries {
		name := e.Name()
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		since, known := p.first[name]
		if !known {
			since = now
		}
		first[name] = since
		if all || now.Sub(since) < 2*time.Second {
			folders = append(folders, filepath.Join("/proc", name))
		}
	}
	p.first = first
	return folders
}
