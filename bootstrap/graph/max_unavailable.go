package graph

import (
	"fmt"
	"slices"
	"time"
)

// DrainWindow is the time in which a node is drained.
type DrainWindow struct {
	Drain    Ref   // the step that drains it; zero if it is drained already and nothing disrupts it any more
	Uncordon Ref   // the step that uncordons it
	Drained  bool  // it is drained already
	For      []Ref // the steps that it is drained for
}

// RebootMutex is the Serial of steps that reboot a host which is no node yet.
const RebootMutex = "reboot"

// LimitUnavailable limits how many nodes are drained at the same time: the drain of a node waits until the node that is limit
// before it is uncordoned. Nodes that are drained already come first. After a failure the nodes behind it are left
// alone. At most limit hosts that are no nodes reboot at the same time, and they do not wait for one that fails.
func (g *Graph) LimitUnavailable(limit int) {
	windows := slices.Clone(g.DrainWindows)
	slices.SortStableFunc(windows, func(a, b DrainWindow) int {
		switch {
		case a.Drained == b.Drained:
			return 0
		case a.Drained:
			return -1
		}
		return 1
	})
	before := map[Ref]Ref{}
	for i := limit; i < len(windows); i++ {
		before[windows[i].Drain] = windows[i-limit].Uncordon
	}
	reboots := 0
	for _, s := range g.Steps {
		if last, ok := before[s.Ref]; ok {
			s.Needs = append(slices.Clone(s.Needs), last)
		}
		if s.Mutex == RebootMutex {
			if lane := reboots % limit; lane > 0 {
				s.Mutex = fmt.Sprintf("%s %d", RebootMutex, lane)
			}
			reboots++
		}
	}
	g.Sort()
}

// drainMargin is what a drain step needs of its time to put back what it did.
const drainMargin = 75 * time.Second

// LimitDrains limits how long pods have to leave a node. A drain that has a limit of its own keeps that.
func (g *Graph) LimitDrains(limit time.Duration) {
	for _, w := range g.DrainWindows {
		for _, s := range g.Steps {
			if s.Ref == w.Drain && s.Input.Values["patience"] == "" {
				s.Timeout = limit + drainMargin
			}
		}
	}
}

// Sort moves every step behind those it needs, and otherwise keeps the order.
func (g *Graph) Sort() {
	all := make(map[Ref]*Step, len(g.Steps))
	for _, s := range g.Steps {
		all[s.Ref] = s
	}
	sorted := make([]*Step, 0, len(g.Steps))
	var put func(*Step)
	put = func(s *Step) {
		if all[s.Ref] == nil {
			return // placed already
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
