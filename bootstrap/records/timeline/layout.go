package timeline

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// The measures of rows, in pixels.
const (
	tall   = 26
	low    = 17
	gap    = 6
	crowd  = 24 // hosts from which on rows are low
	margin = 3  // below and above a row's bars
)

type row struct {
	Name   string
	Failed bool
	Style  template.CSS // its height
	Boxes  []box
}

// box is something on a row: a bar, a wait, a look. One with a number has a detail.
type box struct {
	Class  string
	Style  template.CSS
	Head   string // of the label; it goes first where there is no room
	Label  string
	Took   string
	Number int // in Details; -1: none
	Speech string
	Inner  []box // the waits in it
	start  int64
}

// detail is what the page shows of a box when it is pointed at.
type detail struct {
	Title  string   `json:"title"`
	Where  string   `json:"where"`
	State  string   `json:"state"`
	Times  string   `json:"times"`
	Facts  []string `json:"facts,omitempty"`
	Error  string   `json:"error,omitempty"`
	Advice string   `json:"advice,omitempty"`
	Log    string   `json:"log,omitempty"`
	Bad    bool     `json:"bad,omitempty"`
}

// scale is the time axis at a magnification.
type scale struct {
	Zoom  int
	Marks []mark
}

type mark struct {
	Style template.CSS
	Label string
}

// line leads along the critical path from one bar to the next, in a box of 1000 by the height of all rows.
type line struct{ X1, Y1, X2, Y2 string }

type group struct{ Class, Name string }

// groups are the kinds of steps, by the first part of their IDs.
var groups = []struct {
	group
	first []string
}{
	{group{"system", "system and packages"}, []string{"os", "repo", "host"}},
	{group{"runtime", "container runtime"}, []string{"runtime"}},
	{group{"kube", "Kubernetes"}, []string{"kube"}},
	{group{"cluster", "cluster and nodes"}, []string{"cluster", "certs", "node", "addon", "network", "restore"}},
	{group{"driver", "driver"}, []string{"driver"}},
	{group{"gpu", "GPUs in the cluster"}, []string{"gpu"}},
	{other, nil},
}

var other = group{"other", "other"}

func groupOf(step string) group {
	first, _, _ := strings.Cut(step, "/")
	for _, g := range groups {
		if slices.Contains(g.first, first) {
			return g.group
		}
	}
	return other
}

// percent is a part of the time, for a style.
func (p *page) percent(ms int64) string { return percent(ms, p.Total) }

func percent(part, whole int64) string {
	return fmt.Sprintf("%.3f%%", 100*float64(part)/float64(max(1, whole)))
}

func (p *page) span(start, end int64) string {
	return "left:" + p.percent(start) + ";width:" + p.percent(end-start)
}

// lane is the height of a lane.
func (p *page) lane() int {
	if p.Low {
		return low
	}
	return tall
}

func (p *page) rows() {
	used := map[group]bool{}
	for _, h := range p.Hosts {
		lane := p.lane()
		height := h.Lanes*lane + 2*margin + gap/2
		r := row{Name: cmp.Or(h.Name, here), Style: template.CSS(fmt.Sprintf("height:%dpx", height))}
		for _, l := range h.Looks {
			r.Boxes = append(r.Boxes, box{Class: "look", start: l.Start, Style: p.place(l.Start, l.End, 0), Number: p.detail(detail{
				Title: l.Text, Where: r.Name, State: "took " + long(l.End-l.Start), Times: times(l.Start, l.End),
			}), Speech: fmt.Sprintf("%s on %s, %s", l.Text, r.Name, long(l.End-l.Start))})
		}
		for _, w := range h.Waits {
			d := detail{Title: "Waits " + w.Text, Where: place(r.Name, w.Step), State: "waited " + long(w.End-w.Start), Times: times(w.Start, w.End)}
			r.Boxes = append(r.Boxes, box{Class: "wait", start: w.Start, Style: p.place(w.Start, w.End, 0), Number: p.detail(d), Speech: fmt.Sprintf("%s waits %s, %s", r.Name, w.Text, long(w.End-w.Start))})
		}
		for _, bar := range h.Bars {
			g := groupOf(bar.Step)
			used[g] = true
			r.Failed = r.Failed || bar.State == Failed
			r.Boxes = append(r.Boxes, p.bar(r.Name, bar, g))
		}
		slices.SortStableFunc(r.Boxes, func(a, b box) int { return cmp.Compare(a.start, b.start) }) // as the tabulator and readers go
		p.Rows = append(p.Rows, r)
		p.Height += height
	}
	for _, g := range groups {
		if used[g.group] {
			p.Groups = append(p.Groups, g.group)
		}
	}
}

func (p *page) place(start, end int64, lane int) template.CSS {
	return template.CSS(fmt.Sprintf("%s;top:%dpx", p.span(start, end), margin+lane*p.lane()))
}

func (p *page) detail(d detail) int {
	p.Details = append(p.Details, d)
	return len(p.Details) - 1
}

func (p *page) bar(host string, bar *Bar, g group) box {
	took := long(bar.End - bar.Start)
	d := detail{
		Title: cmp.Or(bar.Title, bar.Step), Where: place(host, bar.Step), Times: times(bar.Start, bar.End),
		State: map[State]string{Done: "done after ", Failed: "failed after ", Running: "not ended after "}[bar.State] + took,
		Log:   strings.Join(bar.Tail, "\n"), Bad: bar.State == Failed,
	}
	class := "bar g-" + g.Class + " s-" + string(bar.State)
	if bar.Critical {
		class += " critical"
		d.Facts = append(d.Facts, "On the critical path.")
	}
	if bar.Why != "" {
		d.Facts = append(d.Facts, "Why: "+bar.Why)
	}
	if bar.Tries > 1 {
		d.Facts = append(d.Facts, fmt.Sprintf("Begun %d times.", bar.Tries))
	}
	out := box{Class: class, Style: p.place(bar.Start, bar.End, bar.Lane), Label: bar.Step, Took: took, start: bar.Start}
	if i := strings.IndexByte(bar.Step, '/'); i > 0 {
		out.Head, out.Label = bar.Step[:i+1], bar.Step[i+1:]
	}
	if len(bar.Waits) > 0 {
		out.Class += " waits"
	}
	for _, w := range bar.Waits {
		d.Facts = append(d.Facts, fmt.Sprintf("Waited %s: %s", long(w.End-w.Start), w.Text))
		out.Inner = append(out.Inner, box{Style: template.CSS("left:" + percent(w.Start-bar.Start, bar.End-bar.Start) + ";width:" + percent(w.End-w.Start, bar.End-bar.Start))})
	}
	if bar.Reason != "" {
		d.Error, d.Advice = bar.Text+" ["+bar.Reason+"]", reason.Lookup(reason.ID(bar.Reason)).Advice
	}
	if hidden := bar.Lines - len(bar.Tail); hidden > 0 {
		d.Log = fmt.Sprintf("… %s before\n%s", plural.Of(hidden, "line"), d.Log)
	}
	out.Number = p.detail(d)
	out.Speech = fmt.Sprintf("%s on %s, %s", bar.Step, host, d.State)
	if bar.Critical {
		out.Speech += ", on the critical path"
	}
	return out
}

func place(host, step string) string {
	if step == "" {
		return host
	}
	return host + " · " + step
}

func times(start, end int64) string { return clock(start) + " – " + clock(end) }

func (p *page) axis() {
	for _, zoom := range []int{1, 2, 4, 8, 16} {
		s := scale{Zoom: zoom}
		for _, t := range ticks(p.Total, 9*zoom) {
			s.Marks = append(s.Marks, mark{template.CSS("left:" + p.percent(t.At)), t.Label})
		}
		p.Scales = append(p.Scales, s)
	}
}

type stage struct {
	Host, Step, Took, Wait string
	Style                  template.CSS
}

// path draws the critical path and lists it.
func (p *page) path() {
	middle := map[*Bar]int{}
	top := 0
	for _, h := range p.Hosts {
		for _, bar := range h.Bars {
			middle[bar] = top + margin + bar.Lane*p.lane() + p.lane()/2 - gap/4
		}
		top += h.Lanes*p.lane() + 2*margin + gap/2
	}
	x := func(ms int64) string { return fmt.Sprintf("%.2f", 1000*float64(ms)/float64(max(1, p.Total))) }
	for i, bar := range p.Path {
		s := stage{Host: cmp.Or(bar.Host, here), Step: bar.Step, Took: long(bar.End - bar.Start), Style: template.CSS("width:" + p.percent(bar.End-bar.Start))}
		if i > 0 {
			before := p.Path[i-1]
			if wait := bar.Start - before.End; wait >= 1000 {
				s.Wait = long(wait)
			}
			if before.Host != bar.Host || before.Lane != bar.Lane || bar.Start > before.End {
				p.Lines = append(p.Lines, line{x(before.End), fmt.Sprint(middle[before]), x(bar.Start), fmt.Sprint(middle[bar])})
			}
		}
		p.Critical = append(p.Critical, s)
	}
}
