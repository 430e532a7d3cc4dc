package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/printable"
)

// PrintRuns writes a line for each run, in this order.
func PrintRuns(w io.Writer, runs []history.Run, now time.Time) error {
	out := &writer{w: printable.Writer(w)}
	if len(runs) == 0 {
		fmt.Fprintln(out, "No run is recorded yet.")
		return out.err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tCLUSTER\tCOMMAND\tBEGUN\tTOOK\tRESULT\tHOSTS")
	for _, r := range runs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", r.Run, r.Cluster, printable.Short(r.Command, 40),
			r.Begun.Local().Format("2006-01-02 15:04:05"), duration(r.Took(now).Round(time.Second)), result(r), len(r.Hosts))
	}
	_ = table.Flush() // the writer below keeps the error
	return out.err
}

// result is how a run ended, or why nothing is known of that.
func result(r history.Run) string {
	if r.State == history.Ended {
		return r.Reason
	}
	return string(r.State)
}

// jsonRun is a run as RunsJSON writes it.
type jsonRun struct {
	history.Result
	Ended  *time.Time    `json:"ended"` // null: it has not
	Exit   *int          `json:"exit"`
	State  history.State `json:"state"`
	Folder string        `json:"folder"`
}

// RunsJSON writes the runs as one JSON array.
func RunsJSON(w io.Writer, runs []history.Run) error {
	out := []jsonRun{}
	for _, r := range runs {
		j := jsonRun{Result: r.Result, State: r.State, Folder: r.Folder}
		if r.State == history.Ended {
			j.Ended, j.Exit = &r.Ended, &r.Exit
		}
		if j.Hosts == nil {
			j.Hosts = []string{}
		}
		out = append(out, j)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// PrintLogs writes what steps printed, and how they failed, a line each with its time, host and step.
func PrintLogs(w io.Writer, events []event.Event) error {
	out := &writer{w: printable.Writer(w)}
	hosts, steps := 0, 0
	for _, e := range events {
		hosts, steps = max(hosts, len(e.Host)), max(steps, len(e.Step))
	}
	for _, e := range events {
		text := e.Text
		if e.Kind == event.Error {
			text = join("failed:", e.Text, exit(e), "["+e.Reason+"]")
		}
		for line := range strings.Lines(text) {
			fmt.Fprintf(out, "%s  %-*s  %-*s  %s\n", e.Time.Local().Format(time.TimeOnly), hosts, e.Host, steps, e.Step, strings.TrimRight(line, "\n"))
		}
	}
	return out.err
}
