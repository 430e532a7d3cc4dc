package storm

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// steps are those of a small cluster, as they begin.
func steps() []Ref {
	var out []Ref
	for _, id := range []string{"os/packages", "os/modules", "os/sysctl", "repo/kubernetes", "repo/docker", "runtime/containerd", "kube/packages"} {
		for _, host := range []string{"w2", "cp1", "w1"} {
			out = append(out, Ref{host, id})
		}
	}
	for _, id := range []string{"cluster/init", "cluster/token", "addon/flannel"} {
		out = append(out, Ref{"cp1", id})
	}
	out = append(out, Ref{"w1", "cluster/join"}, Ref{"w2", "cluster/join"})
	for _, id := range []string{"cluster/untoken", "cluster/nodes", "cluster/ready"} {
		out = append(out, Ref{"cp1", id})
	}
	return out
}

var everything = Want{
	Hits: 60, Faults: map[string]int{Kill: 3, Reboot: 1, Power: 1, Cut: 1, Lock: 1, Unit: 1, Dpkg: 1}, Rounds: 5,
	Wishes: []Wish{{"cluster/init", []string{Reboot, Power}}, {"cluster/join", []string{Power}}, {"no/such", []string{Power}}},
}

func TestSameSeedSameSchedule(t *testing.T) {
	printed := map[string]uint64{}
	for seed := range uint64(50) {
		a, b := NewSchedule(seed, steps(), everything), NewSchedule(seed, steps(), everything)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d makes two schedules", seed)
		}
		// Which host is the faster one must not matter.
		other := steps()
		slices.SortStableFunc(other, func(a, b Ref) int { return -bytes.Compare([]byte(a.Host), []byte(b.Host)) })
		if !reflect.DeepEqual(a, NewSchedule(seed, other, everything)) {
			t.Fatalf("seed %d: the schedule depends on the order among hosts", seed)
		}
		var text bytes.Buffer
		if err := a.Print(&text); err != nil {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(text.Bytes(), []byte("\n"))
		if twin, ok := printed[string(body)]; ok {
			t.Errorf("seeds %d and %d make the same schedule", twin, seed)
		}
		printed[string(body)] = seed
	}
}

func TestScheduleHitsEveryStepAndAllWishes(t *testing.T) {
	for seed := range uint64(200) {
		s := NewSchedule(seed, steps(), everything)
		if len(s.Rounds) != 5 || s.Count() != 14+2+60 {
			t.Fatalf("seed %d: %d hits in %d rounds", seed, s.Count(), len(s.Rounds))
		}
		killed, wished, numbers := map[string]bool{}, map[string]string{}, map[int]bool{}
		for _, round := range s.Rounds {
			for _, h := range round {
				numbers[h.Number] = true
				if h.Must && h.Fault == Kill {
					killed[h.Point.Step] = true
				}
				if h.Point.Phase != Connect && !slices.Contains(steps(), h.Point.Ref) {
					t.Errorf("seed %d: %s: no such step", seed, h)
				}
				if h.Must && h.Fault != Kill {
					wished[h.Point.Step] = h.Fault
				}
			}
		}
		for _, ref := range steps() {
			if !killed[ref.Step] {
				t.Errorf("seed %d: nothing strikes %s", seed, ref.Step)
			}
		}
		for n := 1; n <= s.Count(); n++ {
			if !numbers[n] {
				t.Errorf("seed %d: no hit %d", seed, n)
			}
		}
		if wished["cluster/init"] == "" || wished["cluster/join"] != Power || len(wished) != 2 {
			t.Errorf("seed %d: wishes are left: %v", seed, wished)
		}
	}
}

// TestQuickStepsAreApart: kgpu is not back in time to be killed in the very next step.
func TestQuickStepsAreApart(t *testing.T) {
	chain := map[string][]string{}
	for _, ref := range steps() {
		chain[ref.Host] = append(chain[ref.Host], ref.Step)
	}
	for seed := range uint64(200) {
		round := map[string]int{}
		for i, hits := range NewSchedule(seed, steps(), Want{}).Rounds {
			for _, h := range hits {
				round[h.Point.Step] = i
			}
		}
		for host, ids := range chain {
			for i := 1; i < len(ids); i++ {
				if round[ids[i-1]] == round[ids[i]] && ids[i] != "cluster/untoken" {
					t.Errorf("seed %d: %s: %s and %s are struck in one round", seed, host, ids[i-1], ids[i])
				}
			}
		}
	}
}

// TestDpkgIsKilledWhereItRuns: in the steps for cards, too.
func TestDpkgIsKilledWhereItRuns(t *testing.T) {
	all := append(steps(), Ref{"w1", "driver/install"}, Ref{"w1", "driver/load"}, Ref{"w1", "gpu/toolkit"}, Ref{"cp1", "gpu/smoke"}, Ref{"w1", "gpu/cuda"})
	struck := map[string]bool{}
	for _, round := range NewSchedule(1, all, Want{Hits: 300, Faults: map[string]int{Dpkg: 1}}).Rounds {
		for _, h := range round {
			if h.Fault == Dpkg {
				struck[h.Point.Step] = true
			}
		}
	}
	want := []string{"driver/install", "gpu/cuda", "gpu/toolkit", "kube/packages", "os/packages", "runtime/containerd"}
	if got := slices.Sorted(maps.Keys(struck)); !slices.Equal(got, want) {
		t.Errorf("in %q, want %q", got, want)
	}
}

func TestOneHitOfASchedule(t *testing.T) {
	s := NewSchedule(7, steps(), everything)
	one, err := s.Only(5)
	if err != nil || one.Count() != 1 || one.Rounds[0][0].Number != 5 {
		t.Errorf("got %v, %v", one, err)
	}
	if _, err := s.Only(1000); err == nil {
		t.Error("a hit that does not exist was found")
	}
}

func ExampleHit_String() {
	fmt.Println(Hit{Number: 3, Point: Point{Ref{"w1", "kube/packages"}, During, 2e9}, Fault: Cut, For: 3e9})
	fmt.Println(Hit{Number: 4, Point: Point{Ref{"cp1", ""}, Connect, 0}, Fault: Kill})
	// Output:
	// #3 cut at w1 kube/packages during+2s for 3s
	// #4 kill at cp1 connect
}
