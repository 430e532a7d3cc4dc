package storm

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hostLog follows what the batches of one host tell, in the very files that they write, which the machine sees: what kgpu hears over
// the network a moment later is known here at once, and while no kgpu runs, too.
type hostLog struct {
	host    string
	runs    func() string    // where the host's /var/lib/kgpu/run is
	read    map[string]int64 // by batch
	partial map[string][]byte

	batch   string // that told something last
	dead    string // the batch that was at work when the host, or its unit, went down
	running string // the step at work there; empty: none
	since   time.Time
	begun   []string             // the steps that have begun, in order, each once
	done    map[string]time.Time // when a step ended well
}

func newHostLog(l *Lab, host string) *hostLog {
	return &hostLog{
		host: host, runs: func() string { return filepath.Join(l.kgpuOf(host), "run") },
		read: map[string]int64{}, partial: map[string][]byte{}, done: map[string]time.Time{},
	}
}

// forget passes over what was told until now: what was done to make what the storm strikes.
func (h *hostLog) forget() error {
	err := h.look()
	h.batch, h.running, h.begun, h.done = "", "", nil, map[string]time.Time{}
	return err
}

// look reads what is new. It is called often.
func (h *hostLog) look() error {
	runs := h.runs()
	batches, err := os.ReadDir(runs)
	if err != nil {
		return nil // nothing was run there yet, or all of it is undone
	}
	for _, b := range batches { // in the order of their names, and so of time
		path := filepath.Join(runs, b.Name(), "events")
		info, err := os.Stat(path)
		if err != nil || info.Size() <= h.read[b.Name()] {
			continue
		}
		if err := h.take(b.Name(), path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func (h *hostLog) take(batch, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(h.read[batch], io.SeekStart); err != nil {
		return err
	}
	more, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	h.read[batch] += int64(len(more))
	text := append(h.partial[batch], more...)
	for {
		line, rest, found := bytes.Cut(text, []byte{'\n'})
		if !found {
			h.partial[batch] = bytes.Clone(text)
			return nil
		}
		h.line(batch, strings.Split(string(line), "\t"), time.Now())
		text = rest
	}
}

// line takes one event of scripts/runner/runner.sh in.
func (h *hostLog) line(batch string, fields []string, now time.Time) {
	switch {
	case len(fields) >= 3 && fields[0] == "B":
		h.batch, h.since = batch, now
		if batch != h.dead {
			h.running = fields[1]
		}
		if !slices.Contains(h.begun, fields[1]) {
			h.begun = append(h.begun, fields[1])
		}
		delete(h.done, fields[1])
	case len(fields) >= 3 && fields[0] == "D":
		if fields[1] == h.running {
			h.running = ""
		}
		if fields[2] == "0" {
			h.done[fields[1]] = now
		}
	}
}

// down says that the host or its unit goes down: what runs there does not end, and what its batch may begin until then
// neither.
func (h *hostLog) down() { h.dead, h.running = h.batch, "" }

// cutOff is the step that did not end in a batch whose host went down; empty: none was at work. Where the host lost what it had told
// of the batch, as disks do of what nobody synced, the step is the one that was at work when the power went: nothing there knows that
// it ended. It may be called from anywhere.
func (h *hostLog) cutOff(went outage) string {
	path := filepath.Join(h.runs(), went.batch, "events")
	if info, err := os.Stat(path); err != nil || info.Size() < went.told {
		return went.step
	}
	again := &hostLog{read: map[string]int64{}, partial: map[string][]byte{}, done: map[string]time.Time{}}
	_ = again.take(went.batch, path) // a batch that told nothing was at no step
	return again.running
}

// outage is what was known of a host when it was told to go down.
type outage struct {
	batch string
	told  int64  // bytes of the batch's events
	step  string // at work; empty: none
}

// outage is that of now.
func (h *hostLog) outage() outage { return outage{h.batch, h.read[h.batch], h.running} }
