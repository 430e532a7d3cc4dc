package timeline

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

//go:embed assets/page.html
var pageText string

//go:embed assets/page.css
var pageStyle string

//go:embed assets/page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Page writes the model as a web page: one file, which asks for nothing from elsewhere and lets nothing be asked for.
func Page(w io.Writer, m *Model) error { return pageTemplate.Execute(w, newPage(m)) }

// The measures of rows, in pixels.
const (
	tall   = 26
	low    = 17
	gap    = 6
	crowd  = 24 // hosts from which on rows are low
	margin = 3  // below and above a row's bars
)

// here is the name of the row of the machine that kgpu ran on.
const here = "kgpu"

// page is what the template shows.
type page struct {
	*Model
	Style    template.CSS
	Script   template.JS
	Policy   string // what the page may do: only its own script, and nothing over the network
	Title    string
	Good     bool
	Ending   string // the result in a word
	When     string
	Took     string
	Facts    []fact
	Rows     []row
	Height   int // of all rows, in pixels
	Low      bool
	Scales   []scale
	Lines    []line
	Groups   []group
	Critical []stage
	Waited   []waited
	Failures []failure
	Left     []left
	Remarks  []remark
	Details  []detail
}

type fact struct{ Name, Value, More string }

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

type stage struct {
	Host, Step, Took, Wait string
	Style                  template.CSS
}

type waited struct {
	Text, Where, Longest string
	longest              int64
}

type failure struct{ Host, Step, Title, Text, Reason, Advice, Log, At string }

type left struct{ Host, Steps, Text string }

type remark struct{ At, Kind, Host, Text string }

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

func newPage(m *Model) *page {
	sum := sha256.Sum256([]byte(pageScript))
	p := &page{
		Model: m, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Title:  cmp.Or(m.Cluster, "kgpu"), Good: m.Reason == "ok", Ending: cmp.Or(m.Reason, m.Fate, "no end told"),
		When: m.Begun.Format("2 January 2006, 15:04:05 MST"), Took: long(m.Total), Low: len(m.Hosts) >= crowd,
	}
	p.rows()
	p.axis()
	p.path()
	p.waits()
	p.failures()
	p.facts()
	for _, n := range m.Notes {
		if n.Kind != event.Error {
			p.Remarks = append(p.Remarks, remark{clock(n.At), string(n.Kind), n.Host, n.Text})
		}
	}
	return p
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

// longWaits is how many waits are listed.
const longWaits = 6

// waits lists the longest waits; the same one of several hosts once.
func (p *page) waits() {
	type sum struct {
		hosts   []string
		longest int64
	}
	sums := map[string]*sum{}
	add := func(host string, w Wait) {
		s := sums[w.Text]
		if s == nil {
			s = &sum{}
			sums[w.Text] = s
		}
		if !slices.Contains(s.hosts, host) {
			s.hosts = append(s.hosts, host)
		}
		s.longest = max(s.longest, w.End-w.Start)
	}
	for _, h := range p.Hosts {
		for _, w := range h.Waits {
			add(cmp.Or(h.Name, here), w)
		}
		for _, bar := range h.Bars {
			for _, w := range bar.Waits {
				add(place(cmp.Or(h.Name, here), bar.Step), w)
			}
		}
	}
	for text, s := range sums {
		if s.longest < 500 {
			continue
		}
		where := s.hosts[0]
		if n := len(s.hosts); n > 1 {
			where = fmt.Sprintf("%s and %d more", where, n-1)
		}
		p.Waited = append(p.Waited, waited{text, where, long(s.longest), s.longest})
	}
	slices.SortFunc(p.Waited, func(a, b waited) int { return cmp.Or(cmp.Compare(b.longest, a.longest), cmp.Compare(a.Text, b.Text)) })
	p.Waited = p.Waited[:min(len(p.Waited), longWaits)]
}

func (p *page) failures() {
	add := func(host, step, title, text, id, log string, at int64) {
		p.Failures = append(p.Failures, failure{host, step, title, text, id, reason.Lookup(reason.ID(id)).Advice, log, clock(at)})
	}
	for _, h := range p.Hosts {
		for _, bar := range h.Bars {
			if bar.State == Failed {
				add(h.Name, bar.Step, bar.Title, bar.Text, bar.Reason, strings.Join(bar.Tail, "\n"), bar.End)
			}
		}
		var steps []string
		for _, l := range h.Left {
			steps = append(steps, l.Step)
		}
		if len(steps) > 0 {
			p.Left = append(p.Left, left{h.Name, strings.Join(steps, ", "), h.Left[0].Text})
		}
	}
	for _, n := range p.Notes {
		if n.Kind == event.Error {
			add(n.Host, "", "", n.Text, n.Reason, "", n.At)
		}
	}
}

func (p *page) facts() {
	count := map[State]int{}
	hosts, leftOut := 0, 0
	for _, h := range p.Hosts {
		leftOut += len(h.Left)
		if h.Name != "" {
			hosts++
		}
		steps := map[string]State{} // one that was done again counts once, as everywhere
		for _, bar := range h.Bars {
			steps[bar.Step] = bar.State
		}
		for _, state := range steps {
			count[state]++
		}
	}
	var more []string
	for _, c := range []struct {
		n    int
		what string
	}{{count[Failed], "failed"}, {count[Running], "not ended"}, {leftOut, "not begun"}} {
		if c.n > 0 {
			more = append(more, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	var onPath int64
	for _, bar := range p.Path {
		onPath += bar.End - bar.Start
	}
	p.Facts = []fact{
		{"Took", p.Took, ""},
		{"Hosts", fmt.Sprint(hosts), ""},
		{"Steps done", fmt.Sprint(count[Done]), strings.Join(more, ", ")},
		{"Nothing to do", fmt.Sprint(p.Satisfied), "steps already in place"},
		{"Critical path", plural.Of(len(p.Path), "step"), long(onPath) + " of work"},
	}
	if len(p.Waited) > 0 {
		p.Facts = append(p.Facts, fact{"Longest wait", p.Waited[0].Longest, p.Waited[0].Text})
	}
}
