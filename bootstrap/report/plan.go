package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// PlanOptions say how a plan is printed.
type PlanOptions struct {
	JSON    bool // as one JSON object
	Verbose bool // list the steps that have nothing to do instead of counting them
	Told    bool // its warnings were told already
}

// PrintPlan writes how much would be done, then what on each host, and why; hosts where it is the same stand together. Inputs
// are left out: they may be secret.
func PrintPlan(w io.Writer, g *graph.Graph, o PlanOptions) error {
	if o.JSON {
		return planJSON(w, g)
	}
	p := On(w)
	if !o.Told {
		for _, warning := range g.MergedWarnings() {
			p.say(yellow, "warning:", " "+warning)
		}
	}
	if g.Kubernetes != "" {
		p.say(plain, "", g.Kubernetes)
	}
	if !g.Empty() {
		p.say(bold, totals(g), "")
	}
	groups := planned(g, o.Verbose)
	room := func(h *hostPlan) bool { return p.look.Width == 0 || h.width(o.Verbose) <= p.look.Width }
	roomy := !slices.ContainsFunc(groups, func(h *hostPlan) bool { return !room(h) })
	for _, h := range groups {
		p.say(bold, strings.Join(h.ids, ", ")+":", " "+h.what(len(h.ids) > 1))
		h.print(p, o.Verbose, roomy)
	}
	for _, next := range g.Rounds {
		p.say(bold, "then, planned anew:", " "+next)
	}
	if g.Empty() {
		p.say(green, "Nothing to do.", "")
	}
	return p.to.err
}

// totals is how much there is to do.
func totals(g *graph.Graph) string {
	hosts, download := map[string]bool{}, 0
	for _, s := range g.Steps {
		hosts[s.Host] = true
		download += s.Download
	}
	text := fmt.Sprintf("%s, %s to do%s", plural.Of(len(hosts), "host"), plural.Of(len(g.Steps), "step"), turns(g))
	if download > 0 {
		text += fmt.Sprintf("; at least %.1f GB to download", float64(download)/1000)
	}
	return text
}

// turns says how many of the steps are done first, as a run counts them; empty: all.
func turns(g *graph.Graph) string {
	first := len(g.InStages(graph.BeforeProof).Steps)
	switch {
	case first == 0 || first == len(g.Steps):
		return ""
	case !g.InStages(graph.Proof).Empty():
		return fmt.Sprintf(": %d first, %d with the proof of the cards", first, len(g.Steps)-first)
	}
	return fmt.Sprintf(": %d first, and then %d", first, len(g.Steps)-first)
}

// hostPlan is the share of a graph that a host has, or several the same.
type hostPlan struct {
	ids     []string
	steps   []*graph.Step
	skipped []graph.Skipped
}

// planned splits a graph by host: first those that have something to do, in the graph's order. Those that would be shown
// in the same words are one.
func planned(g *graph.Graph, verbose bool) []*hostPlan {
	var hosts, groups []*hostPlan
	byID, byText := map[string]*hostPlan{}, map[string]*hostPlan{}
	of := func(id string) *hostPlan {
		if byID[id] == nil {
			byID[id] = &hostPlan{ids: []string{id}}
			hosts = append(hosts, byID[id])
		}
		return byID[id]
	}
	for _, s := range g.Steps {
		h := of(s.Host)
		h.steps = append(h.steps, s)
	}
	for _, s := range g.Skipped {
		h := of(s.Host)
		h.skipped = append(h.skipped, s)
	}
	for _, h := range hosts {
		text := h.what(false) + "\n" + h.table(verbose)
		if same := byText[text]; same != nil {
			same.ids = append(same.ids, h.ids...)
			continue
		}
		byText[text] = h
		groups = append(groups, h)
	}
	return groups
}

// what is how much there is to do on a host, or on each of several.
func (h *hostPlan) what(each bool) string {
	text := "nothing to do"
	if len(h.steps) > 0 {
		text = plural.Of(len(h.steps), "step")
		if each {
			text += " each"
		}
	}
	unwanted := 0
	for _, s := range h.skipped {
		if s.Unselected {
			unwanted++
		}
	}
	var rest []string
	if n := len(h.skipped) - unwanted; n > 0 {
		rest = append(rest, plural.Of(n, "step")+" in order already")
	}
	if unwanted > 0 {
		rest = append(rest, plural.Of(unwanted, "step")+" left out")
	}
	if len(rest) > 0 {
		text += " (" + strings.Join(rest, ", ") + ")"
	}
	return text
}

// table has a line for each step.
func (h *hostPlan) table(verbose bool) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range h.steps {
		fmt.Fprintf(table, "  + %s\t%s\t%s\n", s.ID, printable.Line(s.Title), printable.Line(s.Reason))
	}
	if verbose {
		for _, s := range h.skipped {
			fmt.Fprintf(table, "  · %s\t\t%s\n", s.ID, printable.Line(s.Reason))
		}
	}
	_ = table.Flush() // to memory
	return b.String()
}

// width is how wide the table is.
func (h *hostPlan) width(verbose bool) int {
	most := 0
	for line := range strings.Lines(h.table(verbose)) {
		most = max(most, ansi.StringWidthWc(strings.TrimSuffix(line, "\n")))
	}
	return most
}

// print writes the table, or, where there is no room for it, the reason below each step.
func (h *hostPlan) print(p *Page, verbose, roomy bool) {
	if roomy {
		_, _ = io.WriteString(p, h.table(verbose)) // the page keeps the error
		return
	}
	for _, s := range h.steps {
		p.say(plain, "", hung(printable.Line(fmt.Sprintf("  + %-18s  %s", s.ID, s.Title)), p.look.Width, 2*len(below)))
		if s.Reason != "" {
			for _, line := range words(printable.Line(s.Reason), p.room(len(below)), p.room(len(below))) {
				p.say(dim, below+line, "")
			}
		}
	}
	if verbose {
		for _, s := range h.skipped {
			p.say(dim, fmt.Sprintf("  · %-18s  %s", s.ID, s.Reason), "")
		}
	}
}

// below is in front of what stands below a line that it belongs to.
const below = "      "

type jsonPlan struct {
	Steps    []jsonStep    `json:"steps"`
	Skipped  []jsonSkipped `json:"skipped"`
	Warnings []string      `json:"warnings"`

	Kubernetes string   `json:"kubernetes"` // which version a new cluster gets, and why, or from which to which it goes; empty: it stays as it is
	Rounds     []string `json:"rounds"`     // what comes after these steps, and is planned then
}

type jsonStep struct {
	Host    string      `json:"host"`
	Step    string      `json:"step"`
	Title   string      `json:"title"`
	Reason  string      `json:"reason"`
	Needs   []event.Ref `json:"needs"`
	Timeout float64     `json:"timeoutSeconds"`
}

type jsonSkipped struct {
	Host   string `json:"host"`
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

func planJSON(w io.Writer, g *graph.Graph) error {
	out := jsonPlan{Steps: []jsonStep{}, Skipped: []jsonSkipped{}, Warnings: []string{}, Kubernetes: printable.Text(g.Kubernetes), Rounds: []string{}}
	for _, next := range g.Rounds {
		out.Rounds = append(out.Rounds, printable.Text(next))
	}
	for _, w := range g.Warnings {
		out.Warnings = append(out.Warnings, printable.Text(w))
	}
	for _, s := range g.Steps {
		step := jsonStep{Host: s.Host, Step: printable.Line(s.ID), Title: printable.Text(s.Title), Reason: printable.Text(s.Reason), Needs: []event.Ref{}, Timeout: s.Timeout.Round(time.Second).Seconds()}
		for _, need := range s.Needs {
			step.Needs = append(step.Needs, event.Ref{Host: need.Host, Step: printable.Line(need.ID)})
		}
		out.Steps = append(out.Steps, step)
	}
	for _, s := range g.Skipped {
		out.Skipped = append(out.Skipped, jsonSkipped{s.Host, printable.Line(s.ID), printable.Text(s.Reason)})
	}
	return writeJSON(w, out)
}
