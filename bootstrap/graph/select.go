package graph

import (
	"path"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/nearest"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// Select keeps the steps whose IDs match one of only (empty: all) and none of skip. IDs may be patterns: "os/*"; they
// match what is below, too: "node/*" is node/drain/w1 as well.
// A step that is left out counts as done for those that need it.
func (g *Graph) Select(only, skip []string) (*Graph, error) {
	for _, pattern := range slices.Concat(only, skip) {
		if err := g.known(pattern); err != nil {
			return nil, err
		}
	}
	if len(only) == 0 && len(skip) == 0 {
		return g, nil
	}
	out := *g
	out.Steps, out.Skipped = nil, slices.Clip(g.Skipped)
	for _, s := range g.Steps {
		if !Selected(only, skip, s.ID) {
			out.Skipped = append(out.Skipped, Skipped{Ref: s.Ref, Reason: "not selected", Unwanted: true})
			continue
		}
		out.Steps = append(out.Steps, s)
	}
	return &out, nil
}

// Selected reports whether a step with this ID is among those that Select keeps.
func Selected(only, skip []string, id string) bool {
	return (len(only) == 0 || Matches(only, id)) && !Matches(skip, id)
}

// Matches reports whether a step with this ID is what one of the patterns says, or below it.
func Matches(patterns []string, id string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		for below := id; below != "."; below = path.Dir(below) {
			if ok, err := path.Match(p, below); ok && err == nil {
				return true
			}
		}
		return false
	})
}

// known refuses a pattern that no step of any host matches: a typing error would silently do nothing otherwise.
func (g *Graph) known(pattern string) error {
	var ids []string
	for _, s := range g.Steps {
		ids = append(ids, s.ID)
	}
	for _, s := range g.Skipped {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if slices.ContainsFunc(ids, func(id string) bool { return Matches([]string{pattern}, id) }) {
		return nil
	}
	return unknown(pattern, ids)
}

// unknown is the error of a pattern that no step matches.
func unknown(pattern string, ids []string) error {
	if hint := nearest.Hint(pattern, ids); hint != "" {
		return reason.Usagef("no step %q.%s", pattern, hint)
	}
	return reason.Usagef("no step %q. There are %s", pattern, strings.Join(ids, ", "))
}
