package storm

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Tally counts what became of the faults.
type Tally struct {
	Steps    []string // of an undisturbed run, each once
	Faults   map[string]*Count
	Hit      map[string]map[Ref]int // by fault: how often it struck while the step was at work; a kill: and kgpu followed it
	Attached int                    // how often a run found a former one at work on a host, and followed it
}

// Count is what became of the faults of one name.
type Count struct {
	Injected  int
	Recovered int // the cluster became what it should, and no run of kgpu had to end for it
	Refused   int // a run of kgpu ended with an error, and the next one made the cluster what it should be
	Lost      int // the cluster did not become what it should

	open    int // nobody knows yet
	blocked int // of these, how many had a run of kgpu end
}

func newTally() Tally {
	t := Tally{Faults: map[string]*Count{}, Hit: map[string]map[Ref]int{}}
	for name := range faults {
		t.Faults[name], t.Hit[name] = &Count{}, map[Ref]int{}
	}
	return t
}

func (t *Tally) inject(fault string) {
	t.Faults[fault].Injected++
	t.Faults[fault].open++
}

func (t *Tally) hit(fault string, at Ref) { t.Hit[fault][at]++ }

// refuse says that a run of kgpu ended with an error: because of a fault that struck a host, of which one is taken.
func (t *Tally) refuse() {
	for _, name := range slices.Sorted(maps.Keys(t.Faults)) {
		if c := t.Faults[name]; name != Kill && c.open > c.blocked {
			c.blocked++
			return
		}
	}
}

// close says what became of the faults of a round.
func (t *Tally) close(well bool) {
	for _, c := range t.Faults {
		if well {
			c.Recovered += c.open - c.blocked
			c.Refused += c.blocked
		} else {
			c.Lost += c.open
		}
		c.open, c.blocked = 0, 0
	}
}

// Struck says whether the fault has struck while the step was at work, on some host.
func (t *Tally) Struck(fault, step string) bool {
	for ref := range t.Hit[fault] {
		if ref.Step == step {
			return true
		}
	}
	return false
}

// Least is when a storm has killed kgpu enough.
type Least struct {
	Kills int
	Steps int // in so many steps of the undisturbed run; zero: in every step in which the schedule has a kill that must strike
}

// missing are those hits that are needed still: where a fault never struck its step, and where there were too few kills.
func (t *Tally) missing(hits []Hit, least Least) []Hit {
	var list []Hit
	for _, h := range hits {
		var needed bool
		switch {
		case h.Must && h.Fault == Kill && least.Steps > 0:
			needed = t.killed() < least.Steps && !t.Struck(Kill, h.Point.Step)
		case h.Must:
			needed = !t.Struck(h.Fault, h.Point.Step)
		default:
			needed = h.Fault == Kill && t.Faults[Kill].Injected < least.Kills
		}
		if needed {
			list = append(list, h)
		}
	}
	return list
}

// killed is in how many steps of the undisturbed run kgpu was killed.
func (t *Tally) killed() (steps int) {
	for _, step := range t.Steps {
		if t.Struck(Kill, step) {
			steps++
		}
	}
	return steps
}

// Sum is all of it.
func (t *Tally) Sum() Count {
	var sum Count
	for _, c := range t.Faults {
		sum.Injected += c.Injected
		sum.Recovered += c.Recovered
		sum.Refused += c.Refused
		sum.Lost += c.Lost
	}
	return sum
}

// Print writes the table.
func (t *Tally) Print(w io.Writer) error {
	line := func(name string, c Count) error {
		_, err := fmt.Fprintf(w, "%-8s %9d %10d %18d %5d\n", name, c.Injected, c.Recovered, c.Refused, c.Lost)
		return err
	}
	if _, err := fmt.Fprintf(w, "%-8s %9s %10s %18s %5s\n", "fault", "injected", "recovered", "refused correctly", "lost"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Faults)) {
		if c := *t.Faults[name]; c.Injected > 0 {
			if err := line(name, c); err != nil {
				return err
			}
		}
	}
	if err := line("all", t.Sum()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "kgpu was killed %s; %d times a run attached to a former one\nhosts lost power %s, and rebooted %s\n",
		t.where(Kill), t.Attached, t.where(Power), t.where(Reboot))
	return err
}

// where says in how many steps a fault has struck. Steps that only faults bring are named.
func (t *Tally) where(fault string) string {
	steps := map[string]bool{}
	for ref := range t.Hit[fault] {
		steps[ref.Step] = true
	}
	var others []string
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if !slices.Contains(t.Steps, step) {
			others = append(others, step)
		}
	}
	text := fmt.Sprintf("in %d of %d steps", len(steps)-len(others), len(t.Steps))
	if len(others) > 0 {
		text += " (and in " + strings.Join(others, ", ") + ")"
	}
	return text + fmt.Sprintf(" on %d places", len(t.Hit[fault]))
}
