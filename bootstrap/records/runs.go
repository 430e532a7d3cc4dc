// Package records is what runs leave on this machine, for those who ask: the list of runs, their logs and pictures, and what of
// them goes into a support bundle. It connects to nothing.
package records

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// Runs writes the runs that left a folder, the newest first, of all clusters or of one: as a table of so many at most, or as
// JSON. A most of zero means all, and JSON has all.
func Runs(w io.Writer, cluster string, most int, json bool, now time.Time) error {
	runs, err := list(cluster)
	if err != nil {
		return err
	}
	if json {
		return report.RunsJSON(w, runs)
	}
	if len(runs) == 0 && cluster != "" {
		if all, err := list(""); err == nil && len(all) > 0 {
			var names []string
			for _, r := range all {
				names = append(names, r.Cluster)
			}
			slices.Sort(names)
			return reason.Usagef("no run of a cluster %q is recorded.%s There are runs of %s", cluster, nearest.Hint(cluster, names), strings.Join(slices.Compact(names), ", "))
		}
	}
	older := 0
	if most > 0 {
		older = max(len(runs)-most, 0)
	}
	if err := report.PrintRuns(w, runs[:len(runs)-older], now); err != nil || older == 0 {
		return err
	}
	_, err = fmt.Fprintf(report.On(w), "%s left out: --all lists them, too\n", plural.Of(older, "older run"))
	return err
}

// list returns the runs of a cluster, the newest first; an empty name means all clusters.
func list(cluster string) ([]history.Run, error) {
	root, err := history.Root()
	if err != nil {
		return nil, err
	}
	return history.List(root, cluster)
}

// Show writes what a run was and how it ended. word is as history.Find takes it, or the path of a run's folder.
func Show(w io.Writer, word string, now time.Time) error {
	run, _, err := recorded(word)
	if err != nil {
		return err
	}
	if run.Run == "" {
		return &reason.UsageError{Message: word + " is a stream of events, and no run's folder"}
	}
	return report.PrintRun(w, run, now)
}

// Logs writes what the steps of a run printed, and how they failed. run is as history.Find takes it, or a path; an empty
// host or step means all.
func Logs(w io.Writer, run, host, step string, failed bool) error {
	found, events, err := recorded(run)
	if err != nil {
		return adviseLast(err, run)
	}
	lines, err := history.Lines(events.All(), host, step, failed)
	if unread := events.Err(); unread != nil {
		return unread
	}
	if err != nil {
		return &reason.UsageError{Message: err.Error()}
	}
	next, stop := iter.Pull(lines)
	_, some := next()
	stop()
	if some {
		return errors.Join(report.PrintLogs(w, found, lines), events.Err())
	}
	return errors.Join(report.PrintSilence(w, found, events.All(), failed), events.Err())
}

// adviseLast is the error of a word that names no run, and says what was meant where it is a host of the newest one.
func adviseLast(err error, word string) error {
	var usage *reason.UsageError
	if last, _, problem := recorded(history.Last); problem == nil && errors.As(err, &usage) && slices.Contains(last.Hosts, word) {
		return reason.Usagef("no run %q, but a host of the newest one: kgpu runs logs last %s", word, word)
	}
	return err
}

// recorded finds a run and what it told. A word with a slash, or the name of a stream of events, is a path.
func recorded(word string) (history.Run, *history.Stream, error) {
	if strings.ContainsRune(word, filepath.Separator) || strings.HasSuffix(word, ".jsonl") {
		run, events, err := history.Open(word)
		if errors.Is(err, os.ErrNotExist) {
			err = &reason.UsageError{Message: "no recorded run " + word}
		}
		return run, events, err
	}
	runs, err := list("")
	if err != nil {
		return history.Run{}, nil, err
	}
	run, err := history.Find(runs, word)
	if err != nil {
		return run, nil, &reason.UsageError{Message: err.Error()}
	}
	return run, run.Stream(), nil
}

// Begin begins the record of a run of an inventory. What about says of the inventory is filled in here.
func Begin(inv *inventory.Inventory, about history.Result, warn func(error)) (*history.Recorder, error) {
	root, err := history.Root()
	if err != nil {
		return nil, err
	}
	about.Cluster, about.Inventory = inv.Cluster, pathOf(inv)
	return history.Begin(root, about, warn), nil
}

// Used reports whether a run of an inventory is recorded.
func Used(inv *inventory.Inventory) bool {
	runs, _ := list(inv.Cluster)
	path := pathOf(inv)
	return slices.ContainsFunc(runs, func(r history.Run) bool { return r.Inventory == path })
}

// pathOf is how records name an inventory.
func pathOf(inv *inventory.Inventory) string {
	if path, err := filepath.Abs(inv.Path); err == nil {
		return path
	}
	return inv.Path
}
