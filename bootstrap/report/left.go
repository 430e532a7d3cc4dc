package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// leftover is what a run that failed has left to do, host by host, as its events tell.
type leftover struct {
	hosts []*hostLeft // in the order of their first step
}

// hostLeft is what is left on one host.
type hostLeft struct {
	id      string
	reached string   // the last step that ended well, or the one that failed
	reason  string   // ID of the failure, or which one elsewhere keeps the rest from being done
	left    []string // steps, the failed one first
	failed  bool     // something failed here, not elsewhere
	behind  bool     // the others went on without this host
}

func (l *leftover) host(id string) *hostLeft {
	for _, h := range l.hosts {
		if h.id == id {
			return h
		}
	}
	h := &hostLeft{id: id}
	l.hosts = append(l.hosts, h)
	return h
}

// note takes in an event. A step that is begun again is left no longer.
func (l *leftover) note(e event.Event) {
	if e.Host == "" || e.Step == "" && e.Kind != event.Warning {
		return
	}
	h := l.host(e.Host)
	switch e.Kind {
	case event.StepStart, event.StepDone:
		h.left = slices.DeleteFunc(h.left, func(id string) bool { return id == e.Step })
		if len(h.left) == 0 && !h.behind {
			h.reason, h.failed = "", false
		}
		if e.Kind == event.StepDone {
			h.reached = e.Step
		}
	case event.Error:
		h.left = slices.Insert(h.left, 0, e.Step)
		h.reached, h.reason, h.failed = e.Step, e.Reason, true
	case event.Warning:
		if e.Step == "" && reason.Known(reason.ID(e.Reason)) {
			h.reason, h.failed, h.behind = e.Reason, true, true
		}
	case event.StepSkip:
		if reason.Known(reason.ID(e.Reason)) { // left out because something failed
			h.left = append(h.left, e.Step)
			if !h.failed {
				h.reason = strings.TrimPrefix(e.Text, "not begun, because ")
			}
		}
	}
}

// shownSteps is how many of a host's steps the table names.
const shownSteps = 3

// table has a line for each host on which something is left; empty: nothing is. It names fewer steps where a terminal of
// that width has no room for more; zero: there is room.
func (l *leftover) table(width int) string {
	text := ""
	for shown := shownSteps; shown > 0; shown-- {
		text = l.naming(shown)
		if fits := func(line string) bool { return ansi.StringWidthWc(line) <= width }; width == 0 || !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return !fits(line) }) {
			break
		}
	}
	return text
}

// naming is the table with so many steps of each host.
func (l *leftover) naming(shown int) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tREACHED\tLEFT TO DO\tREASON")
	rows := 0
	for _, h := range l.hosts {
		if len(h.left) == 0 && !h.behind || h.reason == string(reason.Cancelled) {
			continue
		}
		rows++
		left := strings.Join(h.left[:min(len(h.left), shown)], ", ")
		if more := len(h.left) - shown; more > 0 {
			left += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", h.id, cmp.Or(h.reached, "-"), cmp.Or(left, "-"), h.reason)
	}
	if rows == 0 {
		return ""
	}
	_ = w.Flush() // to memory
	return b.String()
}
