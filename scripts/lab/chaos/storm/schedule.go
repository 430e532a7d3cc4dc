package storm

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Hit is one fault at one point.
type Hit struct {
	Number int // from 1, in the schedule: what -only names
	Point  Point
	Fault  string
	For    time.Duration // how long the fault lasts, where it lasts
	Must   bool          // it is there so that its step is hit while it runs, and comes again until it was
}

// again is a hit that found no occasion, when it comes again. The step of one that must strike a host was over before: it
// strikes as soon as the step begins.
func (h Hit) again() Hit {
	if h.Must {
		h.Point.Phase, h.Point.After = Begin, 0
	}
	return h
}

// String is how hits are printed.
func (h Hit) String() string {
	text := fmt.Sprintf("#%d %s at %s", h.Number, h.Fault, h.Point)
	if h.For > 0 {
		text += fmt.Sprintf(" for %s", h.For)
	}
	return text
}

// Wish is a step that a fault must hit, on a host that the seed chooses.
type Wish struct {
	Step   string
	Faults []string // one of these
}

// Want is what a schedule shall have.
type Want struct {
	Hits   int            // at points anywhere, beside those for each step and each wish
	Faults map[string]int // what strikes there: name → weight
	Wishes []Wish
	Rounds int // at least strides
}

// withDpkg are the steps in which dpkg runs, on hosts that have them.
var withDpkg = []string{
	"os/packages", "runtime/containerd", "runtime/docker", "kube/packages", "driver/install", "driver/fabric", "gpu/toolkit", "gpu/cuda",
	"kube/kubeadm", "kube/upgrade",
}

// strides is over how many rounds the kills for each step are spread. Steps that follow each other on a host are struck
// in different rounds: kgpu needs about a second to come back, and many a step takes less.
const strides = 3

// Schedule is what strikes in a series of rounds, each of which makes the cluster anew.
type Schedule struct {
	Seed   uint64
	Rounds [][]Hit
}

// NewSchedule makes the schedule of a seed: in the first rounds kgpu is killed in every step once, on some host, and the
// wishes come true; other hits are spread over all rounds and steps. It is pure: the same arguments make the same
// schedule. steps are those of an undisturbed run, each host's in the order in which they begin.
func NewSchedule(seed uint64, steps []Ref, want Want) Schedule {
	d := &dice{rand.New(rand.NewPCG(seed, 0))}
	s := Schedule{Seed: seed, Rounds: make([][]Hit, max(want.Rounds, strides))}
	add := func(round int, h Hit) { s.Rounds[round] = append(s.Rounds[round], h) }

	place := map[Ref]int{} // in its host's chain
	hosts := map[string][]Ref{}
	count := map[string]int{}
	var ids []string
	for _, ref := range sorted(steps) {
		place[ref] = count[ref.Host]
		count[ref.Host]++
		if hosts[ref.Step] == nil {
			ids = append(ids, ref.Step)
		}
		hosts[ref.Step] = append(hosts[ref.Step], ref)
	}
	offset := d.IntN(strides)
	for _, id := range ids {
		ref := pick(d, hosts[id])
		add((place[ref]+offset)%strides, Hit{Point: Point{Ref: ref, Phase: Begin}, Fault: Kill, Must: true})
	}
	for i, wish := range want.Wishes {
		if all := hosts[wish.Step]; len(all) > 0 {
			fault := pick(d, wish.Faults)
			add(i%len(s.Rounds), Hit{Point: Point{pick(d, all), During, d.soon()}, Fault: fault, For: d.lasting(fault), Must: true})
		}
	}
	all := sorted(steps)
	for i := range want.Hits {
		fault := d.weighted(want.Faults)
		point := Point{Ref: pick(d, all), Phase: d.phase()}
		switch point.Phase {
		case During, Between:
			point.After = d.after()
		case Connect:
			point.Step = ""
		}
		if fault == Dpkg { // which runs in some steps only
			point = Point{pick(d, only(all, withDpkg...)), During, d.after()}
		}
		add(i%len(s.Rounds), Hit{Point: point, Fault: fault, For: d.lasting(fault)})
	}
	number := 0
	for _, round := range s.Rounds {
		for i := range round {
			number++
			round[i].Number = number
		}
	}
	return s
}

// sorted brings the steps in an order that does not depend on which host was the faster one: by host, then as they begin.
func sorted(steps []Ref) []Ref {
	out := slices.Clone(steps)
	slices.SortStableFunc(out, func(a, b Ref) int {
		switch {
		case a.Host < b.Host:
			return -1
		case a.Host > b.Host:
			return 1
		}
		return 0
	})
	return out
}

func only(steps []Ref, ids ...string) []Ref {
	var out []Ref
	for _, s := range steps {
		if slices.Contains(ids, s.Step) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return steps
	}
	return out
}

// Only keeps one hit of the schedule, and the round it is in.
func (s Schedule) Only(number int) (Schedule, error) {
	for _, round := range s.Rounds {
		for _, h := range round {
			if h.Number == number {
				return Schedule{Seed: s.Seed, Rounds: [][]Hit{{h}}}, nil
			}
		}
	}
	return s, fmt.Errorf("the schedule of seed %d has no hit %d", s.Seed, number)
}

// Count is how many hits there are.
func (s Schedule) Count() int {
	n := 0
	for _, round := range s.Rounds {
		n += len(round)
	}
	return n
}

// Print writes the schedule, a hit a line.
func (s Schedule) Print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "seed %d: %d faults in %d rounds\n", s.Seed, s.Count(), len(s.Rounds)); err != nil {
		return err
	}
	for i, round := range s.Rounds {
		for _, h := range round {
			if _, err := fmt.Fprintf(w, "  round %d: %s\n", i+1, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// dice are what a seed decides.
type dice struct{ *rand.Rand }

func pick[T any](d *dice, list []T) T { return list[d.IntN(len(list))] }

func (d *dice) phase() Phase {
	return pick(d, []Phase{Begin, During, During, During, End, Between, Connect})
}

func (d *dice) after() time.Duration {
	return pick(d, []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second})
}

// soon is after what most steps are at work still.
func (d *dice) soon() time.Duration {
	return pick(d, []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second})
}

// lasting is how long a fault lasts: shorter and longer than kgpu needs to notice that a link is dead.
func (d *dice) lasting(fault string) time.Duration {
	if list := faults[fault].lasts; len(list) > 0 {
		return pick(d, list)
	}
	return 0
}

func (d *dice) weighted(weights map[string]int) string {
	names := make([]string, 0, len(weights))
	for name, n := range weights {
		for range n {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return pick(d, names)
}
