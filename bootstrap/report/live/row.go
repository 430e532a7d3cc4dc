package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// mood is how a host is, the one that needs eyes most first.
type mood int

const (
	bad     mood = iota // a step failed
	works               // a step is at work
	waits               // for somebody else
	idle                // not begun, or between two steps
	stopped             // the rest is left out, because something failed elsewhere
	well                // all is done, or there is nothing to do
	unknown             // nothing is planned yet
)

// row is a host, as it is drawn.
type row struct {
	host      string
	mood      mood
	step      string // that is at work; empty: none is
	text      string
	since     time.Time // zero: no matter
	done, all int       // steps; all is zero where nobody knows how many there are
}

// row says how the host is. known: all its steps are, so that it is done when they are.
func (h *host) row(planned, known bool) row {
	r := row{host: h.id, all: len(h.steps)}
	if !planned {
		r.all = 0
	}
	var at, next, broken, out *step
	left := 0
	for _, t := range h.steps {
		switch {
		case t.phase == done:
			r.done++
		case t.phase == running && at == nil:
			at = t
		case t.phase == pending && next == nil:
			next = t
		case t.phase == failed && broken == nil:
			broken = t
		case t.phase == leftOut:
			if left++; out == nil {
				out = t
			}
		}
	}
	if at != nil {
		r.step = at.Step
	}
	switch {
	case h.wait != "":
		r.mood, r.text, r.since = waits, waitWords(h.wait), h.since
	case at != nil && at.wait != "":
		r.mood, r.text, r.since = waits, at.Step+" "+waitWords(at.wait), at.began
	case at != nil:
		r.mood, r.text, r.since = works, printable.Join("  ", cmp.Or(at.title, at.Step), at.progress.String()), at.began
	case next != nil:
		r.mood, r.text, r.since = h.ahead(next)
	case out != nil:
		r.mood, r.text = stopped, fmt.Sprintf("left out: %s%s, %s", out.Step, more(left-1), out.reason)
	case known:
		r.mood = well
	case len(h.steps) > 0:
		r.mood, r.text, r.since = idle, "between two steps", h.since
	default:
		r.mood = unknown
	}
	if broken != nil {
		now := ""
		if at == nil && next == nil {
			r.since = time.Time{}
		}
		if at != nil || next != nil {
			now = "now " + r.text
		} else if left > 0 {
			now = fmt.Sprintf("%s left out", plural.Of(left, "step"))
		}
		r.mood, r.text = bad, printable.Join("; ", fmt.Sprintf("failed: %s [%s]", broken.Step, broken.reason), now)
	}
	return r
}

// ahead says what keeps a host from going on: others, by the first step that waits for them, or what an event told of a
// step that could begin.
func (h *host) ahead(next *step) (mood, string, time.Time) {
	for _, t := range h.steps {
		if t.phase != pending {
			continue
		}
		near := false
		var far []*step
		for _, need := range t.needs {
			switch {
			case need.phase == done:
			case need.Host == h.id:
				near = true
			default:
				far = append(far, need)
			}
		}
		switch {
		case len(far) > 0:
			return waits, fmt.Sprintf("waits for %s on %s%s", far[0].Step, far[0].Host, more(len(far)-1)), h.since
		case near: // a step before it is what counts
		case t.wait != "":
			return waits, t.Step + " " + waitWords(t.wait), h.since
		default:
			return idle, "next: " + cmp.Or(t.title, t.Step), time.Time{}
		}
	}
	return idle, "next: " + cmp.Or(next.title, next.Step), time.Time{}
}

// rows are the hosts, those that need eyes first in front, the others as they were first heard of.
func (s *State) rows() []row {
	var rows []row
	for _, h := range s.hosts {
		rows = append(rows, h.row(s.planned, s.planned || !s.ended.IsZero() && len(h.steps) > 0))
	}
	slices.SortStableFunc(rows, func(a, b row) int { return min(int(a.mood), 1) - min(int(b.mood), 1) })
	return rows
}

// waitWords is what an event says that it waits for, as a verb.
func waitWords(what string) string {
	if strings.HasPrefix(what, "for ") {
		return "waits " + what
	}
	return "waits: " + what
}

// more is " and 3 more", or nothing.
func more(n int) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
