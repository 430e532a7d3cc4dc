// Package plan decides what has to be done: (inventory, facts, catalog) → a graph of steps, each with its reason.
// It is pure: no clock, no network, no files.
package plan

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
	Later    bool          // is done when the cards are proven: no other step needs it
	Serial   string        // steps with the same word never run at the same time anywhere; empty: no limit
	Download int           // megabytes, where that is known before
	ByHand   []*Step       // do the same where people run the steps, and carry no outputs; nil: the step itself

	disturbs  string // what becomes of the containers that run on the host; empty: nothing
	undrained bool   // deletes a node that was not drained: its pods end where they are
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

	Kubernetes string // which version a new cluster gets, and why that one; empty: nobody chose

	windows []window
}

// Drained lists the nodes that the plan drains, or deletes with their pods, in its order, and why.
func (g *Graph) Drained() (nodes []string, reasons map[string]string) {
	reasons = map[string]string{}
	for _, s := range g.Steps {
		if s.Script == drainScript || s.Script == hungDrainScript || s.Script == leaveScript || s.undrained {
			node := s.Input.Values["node"]
			nodes, reasons[node] = append(nodes, node), s.Reason
		}
	}
	return nodes, reasons
}

// Agreed lets the steps that drain these nodes end whatever holds cards there. Where nobody agreed, they refuse if such pods
// have come since the plan was shown.
func (g *Graph) Agreed(nodes []string) {
	for _, s := range g.Steps {
		if (s.Script == drainScript || s.Script == hungDrainScript) && slices.Contains(nodes, s.Input.Values["node"]) {
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

// Empty reports whether there is nothing to do.
func (g *Graph) Empty() bool { return len(g.Steps) == 0 }

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
			if before := all[need]; before != nil && (!seen[need] || before.Later && !s.Later) {
				return fmt.Errorf("step %s needs %s, which comes later", s.Ref, need)
			}
		}
		seen[s.Ref] = true
	}
	return nil
}
