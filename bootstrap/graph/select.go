package graph

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// Select keeps the steps whose IDs match a pattern of only (all if it is empty) and no pattern of skip. Patterns also
// match IDs below: "node/*" matches node/drain/w1. An excluded step counts as done. The drain of a node is kept if a
// step that it is for is kept, and excluded otherwise; the node is uncordoned afterwards.
func (g *Graph) Select(only, skip []string) (*Graph, error) {
	for _, pattern := range slices.Concat(only, skip) {
		if err := g.checkPattern(pattern); err != nil {
			return nil, err
		}
	}
	if len(only) == 0 && len(skip) == 0 {
		return g, nil
	}
	keep := map[Ref]bool{}
	for _, s := range g.Steps {
		keep[s.Ref] = Selected(only, skip, s.ID)
	}
	for _, w := range g.DrainWindows {
		w.choose(keep, only, skip)
	}
	out := *g
	out.Steps, out.Skipped = nil, slices.Clip(g.Skipped)
	for _, s := range g.Steps {
		if !keep[s.Ref] {
			out.Skipped = append(out.Skipped, Skipped{Ref: s.Ref, Reason: "not selected", Unselected: true})
			continue
		}
		out.Steps = append(out.Steps, s)
	}
	return &out, nil
}

// choose keeps the selected steps of a window, and those without which the kept steps would disrupt pods or leave the
// node cordoned.
func (w DrainWindow) choose(keep map[Ref]bool, only, skip []string) {
	disrupted := slices.ContainsFunc(w.For, func(step Ref) bool { return keep[step] })
	drain := disrupted && w.Drain != (Ref{}) && !Matches(skip, w.Drain.ID)
	back := drain || w.Drained && (disrupted || len(w.For) == 0)
	named := len(only) > 0
	keep[w.Drain] = named && keep[w.Drain] || drain
	keep[w.Uncordon] = named && keep[w.Uncordon] || back && !Matches(skip, w.Uncordon.ID)
}

// Selected reports whether Select keeps a step with this ID, not regarding windows.
func Selected(only, skip []string, id string) bool {
	return (len(only) == 0 || Matches(only, id)) && !Matches(skip, id)
}

// Matches reports whether one of the patterns matches the ID, or an ID above it.
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

// checkPattern returns a usage error for a pattern that matches no step: a mistyped one would silently do nothing.
func (g *Graph) checkPattern(pattern string) error {
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
	return noSuchStep(pattern, ids)
}

// noSuchStep is the error for a pattern that matches no step. If only its family is wrong, it suggests the right one.
func noSuchStep(pattern string, ids []string) error {
	_, name, _ := strings.Cut(pattern, "/")
	same := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, other, _ := strings.Cut(id, "/")
		return name != other && !strings.HasPrefix(name, other+"/") // driver/drain/w1
	})
	hint := nearest.Hint(pattern, ids)
	if len(same) == 1 {
		hint = fmt.Sprintf(" Did you mean %q?", same[0])
	}
	if hint != "" {
		return reason.Usagef("no step %q.%s", pattern, hint)
	}
	return reason.Usagef("no step %q. There are %s", pattern, strings.Join(ids, ", "))
}
