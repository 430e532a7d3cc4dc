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

// Kind is what steps have in common that do the same on different hosts, or for different nodes. Its ID is an API: people choose
// steps by it, and records of runs name it.
type Kind struct {
	ID       string // of its steps
	Former   string // the ID that they had in former versions of kgpu, and have in records of those; empty: this one
	PerNode  bool   // a node's name follows in the ID of each step: node/drain/w1
	Title    string // of steps that have no title of their own
	Script   string // as the title
	Retry    Class
	Timeout  time.Duration // as the title
	Disrupts bool          // pods of a node end, or may fail, by it: the node is drained before
	Resumes  string        // what carries on with an interrupted run that has such a step; empty: `kgpu up`
}

// Kinds are all that there are.
type Kinds []Kind

// Of is the kind of the step with this ID, which may be a former one; nil: there is none.
func (k Kinds) Of(id string) *Kind {
	i := slices.IndexFunc(k, func(kind Kind) bool {
		return kind.ID == id || kind.Former == id && id != "" || kind.PerNode && kind.ID == path.Dir(id)
	})
	if i < 0 {
		return nil
	}
	return &k[i]
}

// Complete gives a step what its kind says. A step of no kind stays as it is, and Validate refuses it.
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

// IDs lists the IDs of the kinds, sorted.
func (k Kinds) IDs() []string {
	var ids []string
	for _, kind := range k {
		ids = append(ids, kind.ID)
	}
	return slices.Sorted(slices.Values(ids))
}

// Check refuses a pattern that no step of any kind matches, before there is a plan.
func (k Kinds) Check(patterns []string) error {
	ids := k.IDs()
	for _, pattern := range patterns {
		if !slices.ContainsFunc(ids, func(id string) bool {
			return Matches([]string{pattern}, id) || strings.HasPrefix(pattern, id+"/") // the step of one node: node/drain/w1
		}) {
			return cmp.Or(k.renamed(pattern), unknown(pattern, ids))
		}
	}
	return nil
}

// renamed is the error of a pattern that steps match whose IDs are others now; nil: none does.
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
