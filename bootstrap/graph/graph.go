// Package graph is the structure of a plan: steps on hosts, their dependencies, their selection by the command line,
// and the limit for unavailable nodes. It does not know what the steps do.
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

// String is the host and the step's ID, for messages.
func (r Ref) String() string { return r.Host + " " + r.ID }

// Class says whether a failed step is retried.
type Class string

const (
	Permanent Class = ""          // a failure ends the step
	Transient Class = "transient" // exit status 75 (EX_TEMPFAIL) is retried with backoff
)

// Stage is a part of a plan. No step needs one of a later stage.
type Stage int

// These are the stages, in their order.
const (
	BeforeProof Stage = iota // what the cluster needs to serve
	Proof                    // the proof of the GPUs, and what would take one from it
	AfterProof               // what the cluster can serve without
)

// File is a file that a step writes to the host.
type File struct {
	Mode    fs.FileMode
	Content []byte
}

// Input is what a step's script reads. It is sent as files, never as shell text.
type Input struct {
	Values map[string]string // named values, read by $(value NAME); they may have several lines
	Files  map[string]File   // absolute path → file, written by install_files
}

// Outputs are what finished steps returned for other steps: step → name → content.
type Outputs map[Ref]map[string][]byte

// Step is one thing to do on one host.
type Step struct {
	Ref
	Title     string // a short phrase for people: "install containerd"
	Reason    string // why it has to be done on this host
	Needs     []Ref  // steps that must succeed before; one that is not in the graph counts as done
	Script    string // name of the script in scripts/steps, without .sh
	Input     Input
	LateInput func(Outputs) (Input, error) // replaces Input if it depends on the outputs of Needs; its result is secret
	Retry     Class
	Timeout   time.Duration // of the script; must not be zero
	Stage     Stage
	Mutex     string  // steps with the same value never run at the same time, on any host; empty for no limit
	Download  int     // MB, if known beforehand
	ByHand    []*Step // steps, without outputs, that people run in its place by hand; nil for the step itself
	Drains    string  // the node whose pods it evicts or deletes; empty if none
	Disrupts  string  // what happens to running containers of the host; empty if nothing does
}

// Skipped is a step that is not done on a host.
type Skipped struct {
	Ref
	Reason     string
	Unselected bool // the command line excludes it, though there may be something to do
}

// Graph is what has to be done. Each step comes after those it needs.
type Graph struct {
	Steps        []*Step
	Skipped      []Skipped
	Warnings     []string
	DrainWindows []DrainWindow

	Kubernetes string   // version of a new cluster, and why it was chosen, or from which to which a cluster comes; empty if there was no choice
	Rounds     []string // what comes after these steps and is planned then, once they are done: "Kubernetes 1.37.2"
}

// Has reports whether there is a step with this ID on any host.
func (g *Graph) Has(id string) bool {
	return slices.ContainsFunc(g.Steps, func(s *Step) bool { return s.ID == id })
}

// Empty reports whether there are no steps.
func (g *Graph) Empty() bool { return len(g.Steps) == 0 }

// InStages returns the graph of the steps in these stages.
func (g *Graph) InStages(stages ...Stage) *Graph {
	return g.where(func(s *Step) bool { return slices.Contains(stages, s.Stage) })
}

// Only returns the graph of the steps with these IDs. Others that they need count as done.
func (g *Graph) Only(ids ...string) *Graph {
	return g.where(func(s *Step) bool { return slices.Contains(ids, s.ID) })
}

// Without returns the graph of the steps with other IDs. Those that they need count as done.
func (g *Graph) Without(ids ...string) *Graph {
	return g.where(func(s *Step) bool { return !slices.Contains(ids, s.ID) })
}

func (g *Graph) where(keep func(*Step) bool) *Graph {
	out := &Graph{DrainWindows: g.DrainWindows}
	for _, s := range g.Steps {
		if keep(s) {
			out.Steps = append(out.Steps, s)
		}
	}
	return out
}

// DrainedNodes lists the nodes whose pods the plan evicts or deletes, in its order, and the reason for each.
func (g *Graph) DrainedNodes() (nodes []string, reasons map[string]string) {
	reasons = map[string]string{}
	for _, s := range g.Steps {
		if s.Drains != "" {
			nodes, reasons[s.Drains] = append(nodes, s.Drains), s.Reason
		}
	}
	return nodes, reasons
}

// AllowGPUEviction allows the steps that drain these nodes to end pods that hold GPUs. Without it they fail if such pods were
// started after the plan was shown.
func (g *Graph) AllowGPUEviction(nodes []string) {
	for _, s := range g.Steps {
		if s.Drains != "" && slices.Contains(nodes, s.Drains) {
			s.Input.Values["agreed"] = "yes"
		}
	}
}

// MergedWarnings returns the warnings for people. What is the same for several hosts is told once, with their names.
func (g *Graph) MergedWarnings() []string {
	hosts := map[string]bool{}
	for _, s := range g.Steps {
		hosts[s.Host] = true
	}
	for _, s := range g.Skipped {
		hosts[s.Host] = true
	}
	var out []string
	first := map[string]int{} // index in out
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

// Validate checks that steps are unique, have a script and a timeout, and come after those they need.
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
