package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/printable"
)

// PlanOptions say how a plan is printed.
type PlanOptions struct {
	JSON    bool // as one JSON object
	Verbose bool // list the steps that have nothing to do instead of counting them
}

// PrintPlan writes what would be done on each host, and why. Inputs are left out: they may be secret.
func PrintPlan(w io.Writer, g *plan.Graph, o PlanOptions) error {
	if o.JSON {
		return planJSON(w, g)
	}
	out := &writer{w: printable.Writer(w)}
	for _, warning := range g.Warnings {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
	for _, h := range planned(g) {
		h.print(out, o.Verbose)
	}
	if g.Empty() {
		fmt.Fprintln(out, "Nothing to do.")
	} else {
		fmt.Fprintf(out, "%s to do.\n", count(len(g.Steps), "step"))
	}
	return out.err
}

// hostPlan is one host's share of a graph.
type hostPlan struct {
	id      string
	steps   []*plan.Step
	skipped []plan.Skipped
}

// planned splits a graph by host: first those that have something to do, in the graph's order.
func planned(g *plan.Graph) []*hostPlan {
	var hosts []*hostPlan
	byID := map[string]*hostPlan{}
	of := func(id string) *hostPlan {
		if byID[id] == nil {
			byID[id] = &hostPlan{id: id}
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
	return hosts
}

func (h *hostPlan) print(w io.Writer, verbose bool) {
	satisfied := ""
	if len(h.skipped) > 0 {
		satisfied = fmt.Sprintf(" (%s in order already)", count(len(h.skipped), "step"))
	}
	if len(h.steps) == 0 {
		fmt.Fprintf(w, "%s: nothing to do%s\n", h.id, satisfied)
	} else {
		fmt.Fprintf(w, "%s: %s%s\n", h.id, count(len(h.steps), "step"), satisfied)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range h.steps {
		fmt.Fprintf(table, "  + %s\t%s\t%s\n", s.ID, s.Title, s.Reason)
	}
	if verbose {
		for _, s := range h.skipped {
			fmt.Fprintf(table, "  · %s\t\t%s\n", s.ID, s.Reason)
		}
	}
	_ = table.Flush() // the writer below keeps the error
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type jsonPlan struct {
	Steps    []jsonStep    `json:"steps"`
	Skipped  []jsonSkipped `json:"skipped"`
	Warnings []string      `json:"warnings"`
}

type jsonStep struct {
	Host    string    `json:"host"`
	Step    string    `json:"step"`
	Title   string    `json:"title"`
	Reason  string    `json:"reason"`
	Needs   []jsonRef `json:"needs"`
	Timeout float64   `json:"timeoutSeconds"`
}

type jsonRef struct {
	Host string `json:"host"`
	Step string `json:"step"`
}

type jsonSkipped struct {
	Host   string `json:"host"`
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

func planJSON(w io.Writer, g *plan.Graph) error {
	out := jsonPlan{Steps: []jsonStep{}, Skipped: []jsonSkipped{}, Warnings: []string{}}
	for _, w := range g.Warnings {
		out.Warnings = append(out.Warnings, printable.Text(w))
	}
	for _, s := range g.Steps {
		step := jsonStep{Host: s.Host, Step: printable.Line(s.ID), Title: printable.Text(s.Title), Reason: printable.Text(s.Reason), Needs: []jsonRef{}, Timeout: s.Timeout.Round(time.Second).Seconds()}
		for _, need := range s.Needs {
			step.Needs = append(step.Needs, jsonRef{need.Host, printable.Line(need.ID)})
		}
		out.Steps = append(out.Steps, step)
	}
	for _, s := range g.Skipped {
		out.Skipped = append(out.Skipped, jsonSkipped{s.Host, printable.Line(s.ID), printable.Text(s.Reason)})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
