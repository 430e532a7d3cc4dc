package records

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cli/browser"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/records/timeline"
)

// TimelineOptions say what Timeline draws, and where. At most one of Page and Trace is wanted.
type TimelineOptions struct {
	Run   string // as history.Find takes it, or a path
	Page  string // file of the page; "-": Out; empty: in the run's folder
	Trace string // file of a Chrome trace instead of the page; "-": Out
	Open  bool   // in the browser
	Out   io.Writer
}

// Timeline draws a run.
func Timeline(o TimelineOptions) error {
	run, events, err := recorded(o.Run)
	if err != nil {
		return err
	}
	model, err := timeline.Of(events.All(), run.Cluster)
	if unread := events.Err(); unread != nil {
		return unread
	}
	if err != nil {
		return &reason.UsageError{Message: err.Error()}
	}
	if run.State != history.Ended {
		model.Fate = string(run.State)
	}
	path, draw := o.Page, timeline.Page
	if o.Trace != "" {
		path, draw = o.Trace, timeline.Trace
	}
	if path == "-" {
		return draw(o.Out, model)
	}
	if path == "" {
		path = filepath.Join(run.Folder, "timeline.html")
	}
	var drawn bytes.Buffer
	if err := draw(&drawn, model); err != nil {
		return fmt.Errorf("drawing the timeline: %w", err)
	}
	if err := writePicture(path, drawn.Bytes()); err != nil {
		return reason.Usagef("the timeline cannot be written: %v; name another file with --file, or --trace", err)
	}
	if _, err := fmt.Fprintln(o.Out, path); err != nil || !o.Open {
		return err
	}
	if path, err = filepath.Abs(path); err == nil {
		browser.Stdout = io.Discard // its chatter is not for whoever reads the path
		err = browser.OpenFile(path)
	}
	if err != nil {
		return fmt.Errorf("opening the browser: %w; open the file above yourself", err)
	}
	return nil
}

// writePicture writes a file as a whole, for its owner only: what steps printed is not for everybody. What is no file, such
// as a pipe, stays what it is.
func writePicture(path string, text []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, text, 0o600)
	}
	return atomicfile.Write(path, text, 0o600)
}
