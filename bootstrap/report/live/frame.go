package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/text/duration"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// The styles, as ANSI sequences.
const (
	plain  = ""
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// What is in front of a host's line, and in which style.
var marks = map[mood]struct{ sign, style string }{
	bad: {"✗", red}, works: {"●", cyan}, waits: {"○", yellow}, idle: {"·", dim}, stopped: {"–", yellow}, well: {"✓", green},
}

// Sizes of a frame, in cells.
const (
	hostMost = 24 // of a host's name
	barWidth = 20
	barFrom  = 60 // narrower terminals have no bar
	slowest  = 10 // hosts in a summary

	titleLeast = 10  // of the command line
	above      = 6   // lines that are left for what is printed above, where there is room
	overflow   = "…" // ends what is cut
)

// Frame draws the state as lines for a terminal of that size, none of which is wider, and which leave room for what is
// printed above them. It depends on nothing else.
func (s *State) Frame(width, height int, now time.Time) []string {
	if !s.ended.IsZero() {
		now = s.ended
	}
	f := frame{width: max(width, 1), room: max(height-1-min(above, height/3), 1), now: now}
	rows := s.rows()
	f.headline(s, rows)
	chain := s.criticalPath()
	if len(chain) > 1 && f.left() > 1 {
		const label = "critical path: "
		f.line(dim, label+pathWords(chain, f.width-len(label)))
	}
	if len(chain) > 0 {
		f.critical = chain[0].Host
	}
	f.hosts(rows)
	return f.lines
}

// frame is the lines so far.
type frame struct {
	width, room int
	now         time.Time
	critical    string // the host on which everything waits
	lines       []string
}

func (f *frame) left() int { return f.room - len(f.lines) }

// line adds a line in one style.
func (f *frame) line(style, text string) {
	f.lines = append(f.lines, styled(style, cut(text, f.width)))
}

func (f *frame) headline(s *State, rows []row) {
	doneSteps, broken, connected := 0, 0, 0
	for _, t := range s.steps {
		switch t.phase {
		case done:
			doneSteps++
		case failed:
			broken++
		}
	}
	for _, h := range s.hosts {
		if h.connected {
			connected++
		}
	}
	parts := []string{duration.Clock(f.now.Sub(s.began))}
	switch {
	case len(s.steps) == 0 && s.watches:
		parts = append(parts, "watching", "no step was heard of yet")
	case len(s.steps) == 0:
		parts = append(parts, "looking at the hosts", plural.Of(connected, "connection"))
	case !s.planned:
		parts = append(parts, plural.Of(doneSteps, "step")+" done")
	default:
		if f.width >= barFrom {
			filled := barWidth * doneSteps / len(s.steps)
			parts = append(parts, strings.Repeat("━", filled)+strings.Repeat("─", barWidth-filled))
		}
		parts = append(parts, fmt.Sprintf("%d of %s", doneSteps, plural.Of(len(s.steps), "step")))
	}
	if broken > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", broken))
	}
	if s.closing != "" && s.ended.IsZero() {
		parts = append(parts, s.closing)
	}
	rest := "  " + strings.Join(parts, "  ")
	title := printable.Join(" ", "kgpu", s.title) // with the hosts that were typed: the numbers matter more
	f.line(bold, cut(title, max(f.width-ansi.StringWidthWc(rest), titleLeast))+rest)
}

// hosts adds a line for each host, those where all is done together in one; or, where there are more than lines, a summary.
func (f *frame) hosts(rows []row) {
	var open, finished []row
	for _, r := range rows {
		switch r.mood {
		case unknown:
		case well:
			finished = append(finished, r)
		default:
			open = append(open, r)
		}
	}
	if need := len(open) + min(len(finished), 1); need > f.left() {
		f.summary(open, finished)
		return
	}
	f.rows(open)
	if len(finished) > 0 {
		f.line(green, fmt.Sprintf("%s %s done: %s", marks[well].sign, plural.Of(len(finished), "host"), names(finished)))
	}
}

// summary counts the hosts by what they do, and shows those that failed, what many wait for, and who is at it the longest.
func (f *frame) summary(open, finished []row) {
	by := map[mood][]row{well: finished}
	for _, r := range open {
		by[r.mood] = append(by[r.mood], r)
	}
	var counts []string
	for _, c := range []struct {
		mood mood
		word string
	}{{bad, "failed"}, {works, "at work"}, {waits, "waiting"}, {idle, "idle"}, {stopped, "left out"}, {well, "done"}} {
		if n := len(by[c.mood]); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, c.word))
		}
	}
	if f.left() < 1 {
		return
	}
	f.line(plain, fmt.Sprintf("%s: %s", plural.Of(len(open)+len(finished), "host"), strings.Join(counts, ", ")))

	if f.left() > 2 && len(by[works]) > 1 {
		f.line(plain, "at work on: "+stepCounts(by[works]))
	}
	room := f.left()
	broken := by[bad][:min(len(by[bad]), max(room/3, 1), room)]
	groups := grouped(by[waits])
	groups = groups[:min(len(groups), 3, room-len(broken))]
	slow := slices.Clone(by[works])
	slices.SortStableFunc(slow, func(a, b row) int {
		switch f.critical {
		case a.host:
			return -1
		case b.host:
			return 1
		}
		return a.since.Compare(b.since)
	})
	slow = slow[:min(len(slow), slowest, room-len(broken)-len(groups))]
	f.rows(slices.Concat(broken, groups, slow))
}

// stepCounts names the steps that are at work, with on how many hosts, the most first.
func stepCounts(rows []row) string {
	on := map[string]int{}
	for _, r := range rows {
		on[r.step]++
	}
	steps := slices.SortedFunc(maps.Keys(on), func(a, b string) int { return cmp.Or(on[b]-on[a], strings.Compare(a, b)) })
	for i, step := range steps {
		steps[i] = fmt.Sprintf("%s (%d)", step, on[step])
	}
	return strings.Join(steps, ", ")
}

// grouped puts those together that wait for the same, the most first. Numbers in the words make no difference.
func grouped(rows []row) []row {
	same := map[string]int{}
	var out []row
	var members []int
	for _, r := range rows {
		key := strings.Map(withoutDigits, r.text)
		i, known := same[key]
		if !known {
			i = len(out)
			same[key] = i
			out, members = append(out, r), append(members, 0)
		}
		members[i]++
		if r.since.Before(out[i].since) {
			out[i].since = r.since
		}
	}
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
		if members[i] > 1 {
			out[i].host, out[i].done, out[i].all = plural.Of(members[i], "host"), 0, 0
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(members[b], members[a]) })
	sorted := make([]row, 0, len(out))
	for _, i := range order {
		sorted = append(sorted, out[i])
	}
	return sorted
}

func withoutDigits(c rune) rune {
	if c >= '0' && c <= '9' {
		return -1
	}
	return c
}

// rows adds a line for each, in columns: the host, its steps, for how long, what.
func (f *frame) rows(rows []row) {
	var ids, steps, times []string
	for _, r := range rows {
		progress, long := "", ""
		switch {
		case r.all > 0:
			progress = fmt.Sprintf("%d/%d", r.done, r.all)
		case r.done > 0:
			progress = fmt.Sprintf("%d done", r.done)
		}
		if !r.since.IsZero() {
			long = duration.Clock(f.now.Sub(r.since))
		}
		ids = append(ids, cut(r.host, min(hostMost, f.width/3)))
		steps, times = append(steps, progress), append(times, long)
	}
	widths := []int{widest(ids), widest(steps), widest(times)}
	for i, r := range rows {
		rest := fmt.Sprintf(" %s  %*s  %*s  %s", padded(ids[i], widths[0]), widths[1], steps[i], widths[2], times[i], r.text)
		style := plain
		if r.mood == bad {
			style = red
		}
		mark := marks[r.mood]
		f.lines = append(f.lines, styled(mark.style, mark.sign)+styled(style, cut(rest, f.width-1)))
	}
}

// cut is text as one line of at most so many cells.
func cut(text string, width int) string {
	if width < 1 {
		return ""
	}
	return ansi.TruncateWc(oneLine.Replace(text), width, overflow)
}

var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

func styled(style, text string) string {
	if style == plain || text == "" {
		return text
	}
	return style + text + reset
}

func widest(texts []string) int {
	most := 0
	for _, t := range texts {
		most = max(most, ansi.StringWidthWc(t))
	}
	return most
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-ansi.StringWidthWc(text), 0))
}

func names(rows []row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.host)
	}
	return strings.Join(out, ", ")
}
