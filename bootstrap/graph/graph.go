// Package graph is what a plan consists of: steps on hosts, what each needs, which of them are chosen, and how many nodes are
// out of service at the same time. It does not know what the steps are for.
package graph

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Ref names a step on a host.
type Ref struct {
	Host string // inventory host ID
	ID   string // step ID
}

// String is host/step ID, for messages.
func (r Ref) String() string { return r.Host + " " + r.ID }

// Class says what a failure of a step means for a retry.
type Class string

// The retry classes.
const (
	Permanent Class = ""          // a failure ends the step
	Transient Class = "transient" // exit status 75 (EX_TEMPFAIL) is tried again with backoff
)

// Stage is a part of a plan. No step needs one of a later stage.
type Stage int

// The stages, in their order.
const (
	First Stage = iota // what the cluster needs to serve
	Proof              // the proof of the cards, and what would take one from it
	Last               // what the cluster serves without
)

// File is a file a step puts on the host.
type File struct {
	Mode    fs.FileMode
	Content []byte
}

// Input is what a step's script reads: small named values and files to put in place. It travels as files, never as shell text.
type Input struct {
	Values map[string]string // $(value NAME) in the script; several lines are allowed
	Files  map[string]File   // absolute path → file, placed by install_files
}

// Outputs are what finished steps printed for others: step → name → content.
type Outputs map[Ref]map[string][]byte

// Step is one thing to do on one host.
type Step struct {
	Ref
	Title    string // what it does, as a person would say it: "install containerd"
	Reason   string // why it has to be done here, now
	Needs    []Ref  // steps that must have ended well before; a step that is not in the graph counts as done
	Script   string // name of the script in scripts/steps, without .sh
	Input    Input
	Late     func(Outputs) (Input, error) // replaces Input where it depends on the outputs of Needs; secret
	Retry    Class
	Timeout  time.Duration // of the script; zero is not allowed
	Stage    Stage
	Serial   string  // steps with the same word never run at the same time anywhere; empty: no limit
	Download int     // megabytes, where that is known before
	ByHand   []*Step // do the same where people run the steps, and carry no outputs; nil: the step itself
	Drains   string  // the node whose pods it moves away or deletes; empty: none
	Disrupts string  // what becomes of the containers that run on the host; empty: nothing
}

// Skipped is a step that has nothing to do on a host, and why.
type Skipped struct {
	Ref
	Reason   string
	Unwanted bool // there may be something to do: the command line leaves it out
}

// Graph is what has to be done. Steps are in an order in which every step comes after what it needs.
type Graph struct {
	Steps    []*Step
	Skipped  []Skipped
	Warnings []string
	Windows  []Window

	Kubernetes string // which version a new cluster gets, and why that one; empty: nobody chose
}

// Has reports whether a step with this ID is to be done on any host.
func (g *Graph) Has(id string) bool {
	return slices.ContainsFunc(g.Steps, func(s *Step) bool { return s.ID == id })
}

// Empty reports whether there is nothing to do.
func (g *Graph) Empty() bool { return len(g.Steps) == 0 }

// At is what has to be done in these stages.
func (g *Graph) At(stages ...Stage) *Graph {
	out := &Graph{Windows: g.Windows}
	for _, s := range g.Steps {
		if slices.Contains(stages, s.Stage) {
			out.Steps = append(out.Steps, s)
		}
	}
	return out
}

// Drained lists the nodes that the plan drains, or deletes with their pods, in its order, and why.
func (g *Graph) Drained() (nodes []string, reasons map[string]string) {
	reasons = map[string]string{}
	for _, s := range g.Steps {
		if s.Drains != "" {
			nodes, reasons[s.Drains] = append(nodes, s.Drains), s.Reason
		}
	}
	return nodes, reasons
}

// Agreed lets the steps that drain these nodes end whatever holds cards there. Where nobody agreed, they refuse if such pods
// have come since the plan was shown.
func (g *Graph) Agreed(nodes []string) {
	for _, s := range g.Steps {
		if s.Drains != "" && slices.Contains(nodes, s.Drains) {
			s.Input.Values["agreed"] = "yes"
		}
	}
}

// Told are the warnings for people: what is the same on several hosts once, with their names.
func (g *Graph) Told() []string {
	hosts := map[string]bool{}
	for _, s := range g.Steps {
		hosts[s.Host] = true
	}
	for _, s := range g.Skipped {
		hosts[s.Host] = true
	}
	var out []string
	first := map[string]int{} // where it stands in out
	names := map[string]string{}
	for _, w := range g.Warnings {
		host, what, ok := strings.Cut(w, ": ")
		if !ok || !hosts[host] {
			out = append(out, w)
			continue
		}
		if names[what] == "" {
			names[what], first[what] = host, len(out)
			out = append(out, w)
			continue
		}
		names[what] += ", " + host
		out[first[what]] = names[what] + ": " + what
	}
	return out
}

// Validate checks that references resolve backwards, refs are unique and timeouts are set.
func (g *Graph) Validate() error {
	all := make(map[Ref]*Step, len(g.Steps))
	for _, s := range g.Steps {
		if all[s.Ref] != nil {
			return fmt.Errorf("step %s is planned twice", s.Ref)
		}
		all[s.Ref] = s
	}
	seen := make(map[Ref]bool, len(g.Steps))
	for _, s := range g.Steps {
		if s.Timeout <= 0 || s.Script == "" {
			return fmt.Errorf("step %s has no timeout or no script", s.Ref)
		}
		for _, need := range s.Needs {
			if before := all[need]; before != nil && (!seen[need] || before.Stage > s.Stage) {
				return fmt.Errorf("step %s needs %s, which comes later", s.Ref, need)
			}
		}
		seen[s.Ref] = true
	}
	return nil
}
