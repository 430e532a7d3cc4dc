package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// sums are the checksums of a host's files, kept beside it by what the kernel says of each: a file whose inode, size and times are
// those of the last snapshot is not read again. No program can set the time at which a file's inode has changed.
type sums struct {
	path      string // empty: nothing is kept
	old, kept map[string]string
	settled   time.Time
}

// settling is how long a change may go without a new time: the kernel writes back what a program changed by way of a mapping
// after dirty_expire_centisecs and dirty_writeback_centisecs, half a minute in all, and notes the next change then.
// Source: Documentation/admin-guide/sysctl/vm.rst of Linux.
const settling = time.Minute

func readSums(path string) (*sums, error) {
	s := &sums{path: path, old: map[string]string{}, kept: map[string]string{}, settled: time.Now().Add(-settling)}
	if path == "" {
		return s, nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if key, sum, ok := strings.Cut(lines.Text(), "\t"); ok {
			s.old[key] = sum
		}
	}
	return s, lines.Err()
}

// of returns the sum of a file, which hash reads where it is not known.
func (s *sums) of(st *syscall.Stat_t, hash func() (string, error)) (string, error) {
	key := fmt.Sprintf("%d:%d %d %d.%09d %d.%09d", st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
	sum, known := s.old[key]
	if !known {
		var err error
		if sum, err = hash(); err != nil {
			return "", err
		}
	}
	if time.Unix(st.Ctim.Unix()).Before(s.settled) {
		s.kept[key] = sum
	}
	return sum, nil
}

// write keeps the sums of the files that there are.
func (s *sums) write() error {
	if s.path == "" {
		return nil
	}
	var text strings.Builder
	for key, sum := range s.kept {
		text.WriteString(key + "\t" + sum + "\n")
	}
	next := fmt.Sprintf("%s.%d", s.path, os.Getpid()) // two snapshots of a host may be taken at the same time
	return errors.Join(os.WriteFile(next, []byte(text.String()), 0o600), os.Rename(next, s.path))
}
