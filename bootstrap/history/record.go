package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/event"
)

// What a recorder keeps at most, in bytes and files: event.Budget has the bound of each host, and event.MaxRunBytes that of all.
const (
	newLog   = 4 << 10 // what a log costs beyond its lines
	mostOpen = 200     // logs that are open at the same time
	mostEnds = 4 << 20 // bytes beyond the bounds for how steps and the run ended
)

// Recorder is an event.Sink that writes a run's folder. What goes wrong with that is a warning and stops nothing.
type Recorder struct {
	warn func(error) // is called once, at most

	mu     sync.Mutex
	folder string
	lock   *flock.Flock // nil: nothing is recorded
	events *os.File
	logs   map[event.Ref]*os.File
	known  map[event.Ref]bool // that have a log
	budget event.Budget       // of the hosts
	size   int                // of events and logs
	ends   int                // of what is beyond the bounds, in bytes
	cut    map[string]bool    // hosts of which not all is there; "": of all
	limit  int                // of size
	plan   []event.Planned
	result Result
	err    error // the first; after it nothing more is recorded
	warned bool
}

// Begin makes the folder of the run that begins, below root, and removes those that are too old. Of about, the run, its
// cluster, command, inventory and version are wanted. warn hears why a run is not recorded, or not to its end.
func Begin(root string, about Result, warn func(error)) *Recorder {
	r := &Recorder{warn: warn, logs: map[event.Ref]*os.File{}, known: map[event.Ref]bool{}, cut: map[string]bool{}, limit: event.MaxRunBytes, result: about}
	r.result.Begun = time.Now()
	if err := r.open(root); err != nil {
		r.err = fmt.Errorf("this run is not recorded: %w", err)
		r.tell()
		return r
	}
	prune(filepath.Dir(r.folder), Kept, KeptBytes)
	return r
}

// open makes the folder. It gets its name when its lock is held: nobody sees a run that seems to be killed.
func (r *Recorder) open(root string) (err error) {
	cluster := filepath.Join(root, fileName(r.result.Cluster))
	r.folder = filepath.Join(cluster, fileName(r.result.Run))
	hidden := filepath.Join(cluster, "."+fileName(r.result.Run))
	if err := os.MkdirAll(cluster, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(hidden, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(hidden, lockFile), flock.SetPermissions(0o600))
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close(), os.RemoveAll(hidden))
		}
	}()
	held, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !held {
		return fmt.Errorf("%s is locked", lock.Path())
	}
	events, err := os.OpenFile(filepath.Join(hidden, eventsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := os.Rename(hidden, r.folder); err != nil {
		return errors.Join(err, events.Close())
	}
	r.lock, r.events = lock, events
	return nil
}

// Emit writes e: all of a run but what hosts print beyond any measure.
func (r *Recorder) Emit(e event.Event) {
	r.mu.Lock()
	r.emit(e.Printed())
	r.mu.Unlock()
	r.tell()
}

// tell warns, once, outside of the lock: who is warned may emit events.
func (r *Recorder) tell() {
	r.mu.Lock()
	err := r.err
	if r.warned {
		err = nil
	}
	r.warned = r.err != nil
	r.mu.Unlock()
	if err != nil {
		r.warn(err)
	}
}

func (r *Recorder) emit(e event.Event) {
	if r.lock == nil || r.err != nil {
		return
	}
	if e.Host != "" && !slices.Contains(r.result.Hosts, e.Host) {
		r.result.Hosts = append(r.result.Hosts, e.Host)
	}
	line, err := json.Marshal(e)
	if err == nil && !r.hasRoom(e, len(line)+len(e.Text)) {
		return
	}
	if err == nil {
		_, err = r.events.Write(append(line, '\n')) // at once: nothing that was told is lost with the process
	}
	r.failed(err)
	switch e.Kind {
	case event.Plan:
		r.plan = append(r.plan, e.Plan...)
		r.failed(writeJSON(filepath.Join(r.folder, planFile), r.plan))
	case event.StepStart:
		r.log(e, fmt.Sprintf("== %s begun %s\n", e.Step, e.Time.Format(time.RFC3339)))
	case event.Log:
		r.log(e, e.Text+"\n")
	case event.Error:
		if e.Step != "" {
			r.log(e, fmt.Sprintf("== failed %s: %s [%s]\n", e.Time.Format(time.RFC3339), e.Text, e.Reason))
		}
		r.close(e.Ref())
	case event.StepDone:
		r.close(e.Ref())
	}
}

func (r *Recorder) failed(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("the rest of this run is not recorded: %w", err)
	}
}

// hasRoom counts what an event adds to the folder, and reports whether that is to be written: all but what a host tells beyond
// its bound, or all hosts beyond theirs. How a step or the run ended has some room beyond.
func (r *Recorder) hasRoom(e event.Event, bytes int) bool {
	within := e.Host == "" || r.budget.Spend(e.Host, bytes)
	if within && r.size+bytes <= r.limit {
		r.size += bytes
		return true
	}
	if within {
		r.leaveOut("", fmt.Sprintf("the hosts told more than %d MiB in all: the rest of it was left out", r.limit>>20), e)
	} else {
		r.leaveOut(e.Host, fmt.Sprintf("%s told more than %d MiB: the rest of it was left out", e.Host, event.MaxHostBytes>>20), e)
	}
	switch e.Kind {
	case event.StepDone, event.StepSkip, event.Error, event.Result:
		r.ends += bytes
		return r.ends <= mostEnds
	}
	return false
}

// leaveOut says once, in the result and in the stream, that from e on not all is there that a host told, or all of them.
func (r *Recorder) leaveOut(host, why string, e event.Event) {
	if r.cut[host] {
		return
	}
	r.cut[host] = true
	r.result.Cut = cmp.Or(r.result.Cut, why)
	line, err := json.Marshal(event.Event{Time: e.Time, Run: e.Run, Host: host, Kind: event.Warning, Text: why})
	if err == nil {
		_, err = r.events.Write(append(line, '\n'))
	}
	r.failed(err)
}

// log appends to the log of e's step.
func (r *Recorder) log(e event.Event, text string) {
	at := e.Ref()
	f := r.logs[at]
	if f == nil {
		if !r.known[at] {
			if r.size+newLog > r.limit || !r.budget.Spend(e.Host, newLog) {
				return
			}
			r.known[at] = true
			r.size += newLog
		}
		if len(r.logs) >= mostOpen {
			for other := range r.logs {
				r.close(other)
			}
		}
		folder := filepath.Join(r.folder, logsFolder, fileName(e.Host))
		err := os.MkdirAll(folder, 0o700)
		if err == nil {
			f, err = os.OpenFile(filepath.Join(folder, fileName(e.Step)+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		}
		if err != nil {
			r.failed(err)
			return
		}
		r.logs[at] = f
	}
	_, err := f.WriteString(text)
	r.failed(err)
}

func (r *Recorder) close(at event.Ref) {
	if f := r.logs[at]; f != nil {
		delete(r.logs, at)
		r.failed(f.Close())
	}
}

// End says how the run ended: reason is that of the result, exit kgpu's exit status.
func (r *Recorder) End(reason string, exit int) {
	r.mu.Lock()
	r.end(reason, exit)
	r.mu.Unlock()
	r.tell()
}

// Discard ends the record and removes it: of a command that could not be meant so, nothing is worth keeping.
func (r *Recorder) Discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock != nil {
		r.end("", 0)
		r.failed(os.RemoveAll(r.folder))
	}
}

func (r *Recorder) end(reason string, exit int) {
	if r.lock == nil {
		return
	}
	for at := range r.logs {
		r.close(at)
	}
	r.failed(r.events.Sync())
	r.failed(r.events.Close())
	r.result.Ended, r.result.Reason, r.result.Exit = time.Now(), reason, exit
	if r.err != nil {
		r.result.Cut = r.err.Error()
	}
	r.failed(writeJSON(filepath.Join(r.folder, resultFile), r.result)) // there may be room for that again
	// A run without a result and without a lock was not killed, whatever else went wrong.
	r.failed(os.Remove(filepath.Join(r.folder, lockFile)))
	r.failed(r.lock.Close())
	r.lock = nil
}

// writeJSON writes a file that is there whole or not at all.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'), 0o600)
}
