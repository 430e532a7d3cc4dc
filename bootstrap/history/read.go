package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// State is where a run is.
type State string

// The states of a run.
const (
	Ended  State = "ended"   // with a result
	AtWork State = "at work" // now
	Killed State = "killed"  // it has no result, and nobody is at work on it
	Lost   State = "lost"    // it came to its end, and the result could not be written; or what is there cannot be read
)

// Run is a run that was recorded. Of one that has not ended, the first and the last events tell the fields, as far as they go:
// Ended is the time of the last one, and there is no reason and no exit status.
type Run struct {
	Result
	State  State
	Folder string
}

// Stepped reports whether a step began in the run: it changed something, or tried to.
func (r Run) Stepped() bool {
	_, err := os.Stat(filepath.Join(r.Folder, logsFolder))
	return err == nil
}

// Took is how long the run took, or is at work.
func (r Run) Took(now time.Time) time.Duration {
	if r.State == AtWork {
		return now.Sub(r.Begun)
	}
	return r.Ended.Sub(r.Begun)
}

// List reads all runs below root, the newest first; cluster, unless it is empty, narrows.
func List(root, cluster string) ([]Run, error) {
	folders, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 { // which a folder that cannot be read looks like
		if _, err := os.ReadDir(root); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, unreadable(err)
		}
	}
	var runs []Run
	for _, folder := range folders {
		if strings.HasPrefix(filepath.Base(folder), ".") || cluster != "" && filepath.Base(filepath.Dir(folder)) != fileName(cluster) {
			continue
		}
		run, err := read(folder)
		if errors.Is(err, os.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil { // one that cannot be read does not hide the others
			run = lost(folder)
		}
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(cmp.Compare(b.Run, a.Run), cmp.Compare(a.Cluster, b.Cluster)) })
	return runs, nil
}

// lost is a run of which only the folder's name is known. It begins with the time.
func lost(folder string) Run {
	r := Run{State: Lost, Folder: folder}
	r.Run, r.Cluster = filepath.Base(folder), filepath.Base(filepath.Dir(folder))
	if begun, err := time.Parse(nameTime, r.Run[:min(len(r.Run), len(nameTime))]); err == nil {
		r.Begun, r.Ended = begun, begun
	}
	return r
}

// nameTime is the time at the beginning of a run's ID.
const nameTime = "20060102-150405"

// unreadable is the error of what cannot be read.
func unreadable(err error) error {
	return &reason.Error{ID: reason.HistoryUnreadable, Doing: "reading what runs left", Err: err}
}

// read reads a run's folder; of its events, where there is no result, the first and the last ones.
func read(folder string) (Run, error) {
	r := Run{Folder: folder, State: Ended}
	locked, err := atWork(folder) // first: who lets go of the lock has written the result
	if err != nil {
		return r, err
	}
	text, err := os.ReadFile(filepath.Join(folder, resultFile))
	if err == nil {
		if err := json.Unmarshal(text, &r.Result); err != nil {
			return r, fmt.Errorf("%s: %w", filepath.Join(folder, resultFile), err)
		}
		return r, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	r.State = Killed
	if _, err := os.Stat(filepath.Join(folder, lockFile)); errors.Is(err, os.ErrNotExist) {
		r.State = Lost
	}
	if locked {
		r.State = AtWork
	}
	r.Run, r.Cluster = filepath.Base(folder), filepath.Base(filepath.Dir(folder))
	return r, r.glance()
}

// Stream is what the run told.
func (r Run) Stream() *Stream { return &Stream{path: filepath.Join(r.Folder, eventsFile)} }

// Open opens a run from elsewhere: a run's folder, or a file with the stream of --output json.
func Open(path string) (Run, *Stream, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Run{}, nil, unreadable(err)
	}
	if info.IsDir() {
		run, err := read(filepath.Clean(path))
		if err != nil {
			return Run{}, nil, unreadable(err)
		}
		return run, run.Stream(), nil
	}
	return Run{Folder: filepath.Dir(path)}, &Stream{path: path}, nil
}

// Stream is a file of events. It is read anew each time that it is ranged over, an event at a time.
type Stream struct {
	path string
	err  error
}

// All are the events, up to what cannot be read. The last line may be cut off: who wrote it was killed.
func (s *Stream) All() iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		f, err := os.Open(s.path)
		if err != nil {
			s.err = err
			return
		}
		defer f.Close()
		s.err = lines(f, s.path, yield)
	}
}

// Err is why the last pass over the events did not come to their end; nil: it did, or was left.
func (s *Stream) Err() error {
	if s.err == nil {
		return nil
	}
	return unreadable(s.err)
}

// lines yields the events of a text, whose name is told in errors, but those of a last line without an end.
func lines(text io.Reader, name string, yield func(event.Event) bool) error {
	in := bufio.NewReader(text)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d: no event of kgpu: %w", name, n, err)
		}
		if e.Schema > event.Schema {
			return fmt.Errorf("%s:%d: a stream of version %d; this kgpu knows %d: take the kgpu that wrote it, or a newer one", name, n, e.Schema, event.Schema)
		}
		if !yield(e.Printed()) {
			return nil
		}
	}
}

// end is how much is read of each end of a stream to see what run it is of: the line of an event is shorter, but that of a
// plan, which comes near the beginning.
const end = 512 << 10

// glance fills in what the first and the last events tell of a run without a result.
func (r *Run) glance() error {
	path := r.Stream().path
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := lines(io.NewSectionReader(f, 0, end), path, r.note); err != nil || info.Size() <= end {
		return err
	}
	from := max(end, info.Size()-end)
	tail := bufio.NewReader(io.NewSectionReader(f, from, info.Size()-from))
	if _, err := tail.ReadBytes('\n'); err != nil && !errors.Is(err, io.EOF) { // of which the beginning is not there
		return err
	}
	return lines(tail, path, r.note)
}

// note takes from an event what it tells of the run.
func (r *Run) note(e event.Event) bool {
	if e.Kind == event.Begin {
		r.Command = e.Text
	}
	if r.Begun.IsZero() {
		r.Begun = e.Time
	}
	r.Ended = e.Time
	for _, p := range e.Plan {
		r.noteHost(p.Host)
	}
	r.noteHost(e.Host)
	return true
}

func (r *Run) noteHost(host string) {
	if host != "" && !slices.Contains(r.Hosts, host) {
		r.Hosts = append(r.Hosts, host)
	}
}
