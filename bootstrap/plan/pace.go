package plan

import (
	"fmt"
	"slices"
)

// window is a time in which a node has no pods: from the step that drains it to the one that lets it in again.
type window struct {
	first Ref // none: it is drained already, and nothing disturbs it any more
	last  Ref
	open  bool // it is drained already
}

// rebootWord is the word of the reboots of hosts that are no nodes yet.
const rebootWord = "reboot"

// Pace has at most limit nodes drained at the same time: each waits until the one that is limit before it has pods again,
// those that are drained already being the first. Where a node fails, those behind it are left alone. At most limit hosts
// that are no nodes reboot at the same time; they do not wait for one that fails.
func (g *Graph) Pace(limit int) {
	windows := slices.Clone(g.windows)
	slices.SortStableFunc(windows, func(a, b window) int {
		switch {
		case a.open == b.open:
			return 0
		case a.open:
			return -1
		}
		return 1
	})
	before := map[Ref]Ref{}
	for i := limit; i < len(windows); i++ {
		before[windows[i].first] = windows[i-limit].last
	}
	reboots := 0
	for _, s := range g.Steps {
		if last, ok := before[s.Ref]; ok {
			s.Needs = append(slices.Clone(s.Needs), last)
		}
		if s.Serial == rebootWord {
			if lane := reboots % limit; lane > 0 {
				s.Serial = fmt.Sprintf("%s %d", rebootWord, lane)
			}
			reboots++
		}
	}
	g.sort()
}

// sort puts every step behind what it needs, and leaves the order as it is otherwise.
func (g *Graph) sort() {
	all := make(map[Ref]*Step, len(g.Steps))
	for _, s := range g.Steps {
		all[s.Ref] = s
	}
	sorted := make([]*Step, 0, len(g.Steps))
	var put func(*Step)
	put = func(s *Step) {
		if all[s.Ref] == nil {
			return // it is in its place
		}
		delete(all, s.Ref)
		for _, need := range s.Needs {
			if n := all[need]; n != nil {
				put(n)
			}
		}
		sorted = append(sorted, s)
	}
	for _, s := range g.Steps {
		put(s)
	}
	g.Steps = sorted
}
