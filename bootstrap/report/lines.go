package report

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/duration"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// tailLines is how much of a failed step's output is shown.
const tailLines = 15

// The colours of a line, as ANSI sequences.
const (
	plain  = ""
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	reset  = "\x1b[0m"
)

// maxTails bounds what a host that names ever more steps can make the report keep.
const maxTails = 1000

// lines shows events as lines of text.
type lines struct {
	writer  *writer
	detail  Detail
	colour  bool
	elapsed bool       // show the time since the first event instead of the time of day
	picture bool       // shows the hosts' steps and waits
	width   func() int // of the terminal, in columns; zero: it does not matter

	mu    sync.Mutex
	first time.Time
	host  int                    // width of the widest host so far
	tails map[event.Ref][]string // ends of the outputs of the steps that run
	left  leftover
	plans bool // the run told one: what is left of it is known
}

// Emit shows e, if the level of detail asks for it.
func (l *lines) Emit(e event.Event) {
	e = e.Printed()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		l.first = e.Time
	}
	l.left.note(e)
	at := e.Ref()
	switch e.Kind {
	case event.Plan:
		l.plans = true
	case event.Connect:
		l.line(Verbose, e, dim, join("connected", e.Text, took(e)))
	case event.Command:
		l.line(Verbose, e, dim, join("ran", e.Text, took(e), exit(e)))
	case event.StepStart:
		delete(l.tails, at)
		l.line(Normal, e, plain, join(cmp.Or(e.Text, "begun"), ago(e)))
	case event.StepDone:
		delete(l.tails, at)
		l.line(Normal, e, green, join("done", took(e)))
	case event.StepSkip:
		l.skip(e)
	case event.Log:
		if len(l.tails) > maxTails {
			clear(l.tails)
		}
		l.tails[at] = append(l.tails[at], e.Text)
		l.tails[at] = l.tails[at][max(0, len(l.tails[at])-tailLines):]
		l.line(Verbose, e, dim, "| "+e.Text)
	case event.Wait:
		l.wait(e)
	case event.Proof:
		l.line(Quiet, e, green, "proven: "+e.Text)
	case event.Warning:
		l.line(Quiet, e, yellow, withoutHost("warning: "+e.Text, e.Host))
	case event.Error:
		l.failure(e, l.tails[at])
		delete(l.tails, at)
	case event.Result:
		l.result(e)
	}
}

func (l *lines) wait(e event.Event) {
	if e.Millis > 0 {
		l.line(Normal, e, plain, join("waited:", e.Text, took(e)))
		return
	}
	from := Normal
	if l.picture && e.Host == "" { // the run as a whole, which has no row
		from = Quiet
	}
	l.line(from, e, yellow, "waiting: "+e.Text)
}

// skip counts what has nothing to do, and shows what is left out because something failed: then the reason is the
// failure's.
func (l *lines) skip(e event.Event) {
	if reason.Known(reason.ID(e.Reason)) {
		l.line(Normal, e, yellow, join("left out:", e.Text))
		return
	}
	word := "nothing to do:"
	if e.Reason == event.Unselected {
		word = "left out:"
	}
	l.line(Verbose, e, dim, join(word, e.Text))
}

func (l *lines) failure(e event.Event, tail []string) {
	if e.Reason == string(reason.Cancelled) && e.Step != "" { // somebody stops kgpu, and the step goes on
		l.line(Normal, e, yellow, e.Text)
		return
	}
	text := join("failed", took(e)) + ": " + cmp.Or(e.Text, "failed")
	l.line(Quiet, e, red, join(text, exit(e), "["+e.Reason+"]"))
	if n := len(tail); n > 0 && strings.TrimSpace(tail[n-1]) == strings.TrimSpace(e.Text) {
		tail = tail[:n-1] // what a step ends with it prints, too
	}
	if l.detail < Verbose {
		for _, line := range tail {
			l.print(dim, "    | "+line)
		}
	}
	if advice := reason.Lookup(reason.ID(e.Reason)).Advice; advice != "" {
		l.print(plain, "    → "+advice)
	}
}

// result ends a run. One that failed shows what is left first.
func (l *lines) result(e event.Event) {
	const in = "  "
	if table := l.left.table(max(l.width()-len(in), 0)); table != "" && e.Reason != "ok" && l.plans {
		l.print(plain, "")
		l.print(plain, "what is left:")
		for line := range strings.Lines(table) {
			l.print(plain, in+line)
		}
	}
	colour := red
	if e.Reason == "ok" {
		colour = green
	}
	l.line(Quiet, e, colour, join(cmp.Or(e.Text, e.Reason), took(e)))
}

// line prints text with time, host and step in front when the level of detail is at least from.
func (l *lines) line(from Detail, e event.Event, colour, text string) {
	l.host = max(l.host, len(e.Host)) // also of what is not shown: the first connections tell the width
	if l.detail < from {
		return
	}
	stamp := e.Time.Format(time.TimeOnly)
	if l.elapsed {
		stamp = fmt.Sprintf("%7s", clock(e.Time.Sub(l.first)))
	}
	front := []string{stamp}
	if l.host > 0 {
		front = append(front, fmt.Sprintf("%-*s", l.host, e.Host))
	}
	if e.Step != "" {
		front = append(front, fmt.Sprintf("%-18s", e.Step))
	}
	text = strings.ReplaceAll(strings.TrimRight(strings.Join(append(front, text), "  "), "\n "), "\n", "\n"+below)
	if width := l.width(); e.Kind == event.Result && width > 0 && ansi.StringWidthWc(text) > width {
		// It ends with a command, which may be copied.
		if i := strings.LastIndex(text, ": "); i >= 0 {
			l.print(colour, text[:i+1]+"\n")
			fmt.Fprintln(l.writer, Look{Colour: l.colour}.painted(colour, below+text[i+2:]))
			return
		}
	}
	parts := strings.Split(text, "\n")
	for i := range parts {
		parts[i] = hung(parts[i], l.width(), len(below))
	}
	l.print(colour, strings.Join(parts, "\n"))
}

// print writes text, in a colour where there are any, and breaks it between words where the terminal is narrower.
func (l *lines) print(colour, text string) {
	text = wrapped(strings.TrimRight(text, "\n "), l.width())
	fmt.Fprintln(l.writer, Look{Colour: l.colour}.painted(colour, text))
}

// Close says what was counted and returns the first error that writing met.
func (l *lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.err
}

func took(e event.Event) string {
	if e.Millis == 0 {
		return ""
	}
	return "after " + duration.Short(time.Duration(e.Millis)*time.Millisecond)
}

// withoutHost is text without the host that stands in front of it anyway: an error names its own.
func withoutHost(text, host string) string {
	if host == "" {
		return text
	}
	return strings.Replace(text, ": "+host+": ", ": ", 1)
}

// ago is when a step began of which somebody heard late.
func ago(e event.Event) string {
	if e.Millis == 0 {
		return ""
	}
	return duration.Short(time.Duration(e.Millis)*time.Millisecond) + " ago"
}

func exit(e event.Event) string {
	if e.Exit == nil || *e.Exit == 0 {
		return ""
	}
	return fmt.Sprintf("(exit status %d)", *e.Exit)
}

// clock is minutes and seconds with tenths.
func clock(d time.Duration) string {
	tenths := max(d, 0).Round(100*time.Millisecond).Milliseconds() / 100
	return fmt.Sprintf("%d:%02d.%d", tenths/600, tenths/10%60, tenths%10)
}

func join(parts ...string) string { return printable.Join(" ", parts...) }
