package graph

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Kind is what steps that do the same on different hosts, or for different nodes, have in common. Its ID is an API:
// people select steps by it, and records of runs have it.
type Kind struct {
	ID       string
	Former   string // the ID in former versions of kgpu, and in their records; empty if it was the same
	PerNode  bool   // the IDs of its steps end with a node's name: node/drain/w1
	Title    string // default of its steps
	Script   string // default of its steps
	Retry    Class
	Timeout  time.Duration // default of its steps
	Disrupts bool          // it ends or disturbs pods of the host's node, which is drained before
	Resumes  string        // the command that resumes an interrupted run with such a step; empty for `kgpu up`
}

// Kinds are the kinds of all steps.
type Kinds []Kind

// Of returns the kind of the step with this ID, which may be a former one; nil if there is none.
func (k Kinds) Of(id string) *Kind {
	i := slices.IndexFunc(k, func(kind Kind) bool {
		return kind.ID == id || kind.Former == id && id != "" || kind.PerNode && kind.ID == path.Dir(id)
	})
	if i < 0 {
		return nil
	}
	return &k[i]
}

// Complete sets what a step takes from its kind. A step without a kind stays as it is, and Validate refuses it.
func (k Kinds) Complete(s *Step) {
	kind := k.Of(s.ID)
	if kind == nil {
		return
	}
	s.Title, s.Script, s.Timeout = cmp.Or(s.Title, kind.Title), cmp.Or(s.Script, kind.Script), cmp.Or(s.Timeout, kind.Timeout)
	s.Retry = kind.Retry
	for _, by := range s.ByHand {
		k.Complete(by)
	}
}

// IDs returns the sorted IDs of the kinds.
func (k Kinds) IDs() []string {
	var ids []string
	for _, kind := range k {
		ids = append(ids, kind.ID)
	}
	return slices.Sorted(slices.Values(ids))
}

// CheckPatterns returns a usage error for a pattern that matches no kind, before there is a plan.
func (k Kinds) CheckPatterns(patterns []string) error {
	ids := k.IDs()
	for _, pattern := range patterns {
		if !slices.ContainsFunc(ids, func(id string) bool {
			return Matches([]string{pattern}, id) || strings.HasPrefix(pattern, id+"/") // a step for one node: node/drain/w1
		}) {
			return cmp.Or(k.renamed(pattern), noSuchStep(pattern, ids))
		}
	}
	return nil
}

// renamed is the error for a pattern that matches only former IDs of steps; nil if there is no such step.
func (k Kinds) renamed(pattern string) error {
	var now []string
	for _, kind := range k {
		if kind.Former != "" && Matches([]string{pattern}, kind.Former) {
			now = append(now, strconv.Quote(kind.ID))
		}
	}
	if len(now) == 0 {
		return nil
	}
	return reason.Usagef("no step %q. Did you mean %s?", pattern, strings.Join(now, " or "))
}
