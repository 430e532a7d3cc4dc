package bootstrap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Runs writes the runs that left a folder, the newest first, as a table or as JSON: all, or a cluster's.
func Runs(w io.Writer, cluster string, json bool, now time.Time) error {
	root, err := history.Root()
	if err != nil {
		return err
	}
	runs, err := history.List(root, cluster)
	if err != nil {
		return err
	}
	if json {
		return report.RunsJSON(w, runs)
	}
	return report.PrintRuns(w, runs, now)
}

// Logs writes what the steps of a run printed, and how they failed. run is as history.Find takes it, or a path; an empty
// host or step means all.
func Logs(w io.Writer, run, host, step string, failed bool) error {
	_, events, err := recorded(run)
	if err != nil {
		return err
	}
	lines, err := history.Lines(events, host, step, failed)
	if err != nil {
		return &UsageError{Message: err.Error()}
	}
	return report.PrintLogs(w, lines)
}

// recorded finds a run and reads its events. A word with a slash, or the name of a stream of events, is a path.
func recorded(word string) (history.Run, []event.Event, error) {
	if strings.ContainsRune(word, filepath.Separator) || strings.HasSuffix(word, ".jsonl") {
		run, events, err := history.Open(word)
		if errors.Is(err, os.ErrNotExist) {
			err = &UsageError{Message: "no recorded run " + word}
		}
		return run, events, err
	}
	root, err := history.Root()
	if err != nil {
		return history.Run{}, nil, err
	}
	runs, err := history.List(root, "")
	if err != nil {
		return history.Run{}, nil, err
	}
	run, err := history.Find(runs, word)
	if err != nil {
		return run, nil, &UsageError{Message: err.Error()}
	}
	events, err := run.Events()
	return run, events, err
}
