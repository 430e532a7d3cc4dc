package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

type fact struct{ Name, Value, More string }

type waited struct {
	Text, Where, Longest string
	longest              int64
}

type failure struct{ Host, Step, Title, Text, Reason, Advice, Log, At string }

type left struct{ Host, Steps, Text string }

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
