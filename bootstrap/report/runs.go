package report

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/history"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/duration"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// How much of a command is shown, in columns.
const (
	wholeCommand = 40
	shortCommand = 16
)

// PrintRuns writes a line for each run, in this order: those that failed in red, those that somebody stopped, or of which
// nobody knows the end, in yellow. A narrow terminal gets less of each.
func PrintRuns(w io.Writer, runs []history.Run, now time.Time) error {
	p := On(w)
	if len(runs) == 0 {
		p.say(plain, "", "No run is recorded yet.")
		return p.to.err
	}
	leave := []int{0, 2, 0, 3, 4, 0, 1}
	width := p.look.Width
	rows := runRows(runs, now, wholeCommand)
	if width > 0 && tableWidth(rows) > width {
		rows = runRows(runs, now, shortCommand)
		narrow(rows, leave, width)
		rows = runRows(runs, now, shortCommand+max(width-tableWidth(rows), 0)) // the command gets what is left
	}
	p.grid(grid{rows, leave, func(row int) string { return colourOf(runs[row-1]) }})
	return p.to.err
}

// runRows are the cells of the table of runs, with so much of the commands.
func runRows(runs []history.Run, now time.Time, command int) [][]string {
	rows := [][]string{{"RUN", "CLUSTER", "COMMAND", "BEGUN", "TOOK", "RESULT", "HOSTS"}}
	for _, r := range runs {
		typed := printable.Line(r.Command)
		rows = append(rows, []string{
			printable.Line(r.Run), printable.Line(r.Cluster), ansi.TruncateWc(typed, command, "…"), r.Begun.Local().Format("Jan _2 15:04"),
			duration.Short(max(r.Took(now), 0).Round(time.Second)), printable.Line(result(r)), fmt.Sprint(len(r.Hosts)),
		})
	}
	return rows
}

// PrintRun writes what there is to know of a run, a line each.
func PrintRun(w io.Writer, r history.Run, now time.Time) error {
	command, ended := r.Command, result(r)
	if command != "" {
		command = "kgpu " + command
	}
	if r.State == history.Ended && r.Exit != 0 {
		ended += fmt.Sprintf(" (exit status %d)", r.Exit)
	}
	p := On(w)
	for _, line := range [][2]string{
		{"run", r.Run}, {"cluster", r.Cluster}, {"command", command}, {"inventory", r.Inventory}, {"kgpu", r.Version}, {"hosts", strings.Join(r.Hosts, ", ")},
		{"begun", r.Begun.Local().Format("2 January 2006, 15:04:05 MST")}, {"took", duration.Short(max(r.Took(now), 0))}, {"result", ended}, {"cut", r.Cut}, {"folder", r.Folder},
	} {
		if line[1] == "" { // one that has not ended has not told it
			continue
		}
		colour := plain
		if line[0] == "result" {
			colour = colourOf(r)
		}
		p.say(colour, fmt.Sprintf("%-9s  %s", line[0], printable.Line(line[1])), "")
	}
	return p.to.err
}

// usage is the result of a run that was not wanted in the end: a question was answered with no.
const usage = "USAGE"

func colourOf(r history.Run) string {
	switch {
	case r.State == history.AtWork, r.State == history.Ended && r.Reason == "ok":
		return plain
	case r.State == history.Ended && r.Reason != string(reason.Cancelled) && r.Reason != usage:
		return red
	}
	return yellow
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
	return writeJSON(w, out)
}

// PrintSilence says of a run that there is nothing to show of its steps, or nothing that failed, and how it ended.
func PrintSilence(w io.Writer, r history.Run, events iter.Seq[event.Event], failed bool) error {
	name, said := r.Run, ""
	for e := range events {
		name = cmp.Or(name, e.Run)
		if e.Kind == event.Result {
			said = e.Text
		}
	}
	if r.Command != "" {
		name += fmt.Sprintf(" (kgpu %s, %s)", r.Command, result(r))
	}
	what := "nothing was printed"
	if failed {
		what = "nothing failed"
	}
	p := On(w)
	p.say(plain, "", printable.Line(printable.Join("; ", "run "+name+": "+what, said)))
	return p.to.err
}

// PrintLogs writes what steps of a run printed, and how they failed, a line each with its time, host and step; failures in red, and in
// yellow what was cut short, and that not all was recorded.
func PrintLogs(w io.Writer, r history.Run, events iter.Seq[event.Event]) error {
	p := On(w)
	hosts, steps := 0, 0
	for e := range events {
		hosts, steps = max(hosts, len(e.Host)), max(steps, len(e.Step))
	}
	for e := range events {
		e = e.Printed()
		text, colour := e.Text, plain
		switch {
		case e.Kind != event.Error:
		case e.Reason == string(reason.Cancelled):
			colour = yellow
		default:
			text, colour = join("failed:", e.Text, exit(e), "["+e.Reason+"]"), red
		}
		for line := range strings.Lines(text) {
			line = fmt.Sprintf("%s  %-*s  %-*s  %s", e.Time.Local().Format(time.TimeOnly), hosts, e.Host, steps, e.Step, strings.TrimRight(line, "\n"))
			p.say(colour, line, "")
		}
	}
	if r.Cut != "" {
		p.say(yellow, "not all of it is here: "+printable.Line(r.Cut), "")
	}
	return p.to.err
}
