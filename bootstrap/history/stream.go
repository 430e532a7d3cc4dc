package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"kgpu.dev/kgpu/bootstrap/event"
)

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
