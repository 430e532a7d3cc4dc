package storm

import (
	"slices"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	n := newTally()
	n.inject(Kill)
	n.inject(Dpkg)
	n.inject(Power)
	n.refuse()
	n.close(true)
	n.inject(Kill)
	n.inject(Cut)
	n.refuse()
	n.close(false)
	for name, want := range map[string]Count{
		Kill: {Injected: 2, Recovered: 1, Lost: 1}, Dpkg: {Injected: 1, Refused: 1}, Power: {Injected: 1, Recovered: 1}, Cut: {Injected: 1, Lost: 1},
	} {
		if got := *n.Faults[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	n.hit(Kill, Ref{"w1", "kube/packages"})
	n.hit(Power, Ref{"w1", "os/modules"})
	n.hit(Power, Ref{"w2", "os/modules"})
	n.hit(Power, Ref{"w2", "os/dpkg"})
	n.Steps = []string{"kube/packages", "os/modules"}
	if !n.Struck(Kill, "kube/packages") || n.Struck(Kill, "cluster/init") || n.Struck(Kill, "os/modules") || !n.Struck(Power, "os/modules") {
		t.Error("what was struck is wrong")
	}
	var text strings.Builder
	if err := n.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"all              5          2                  1     2\n", "killed in 1 of 2 steps on 1 places", "lost power in 1 of 2 steps (and in os/dpkg) on 3 places, and rebooted in 0 of 2 steps"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	n := newTally()
	must := Hit{Point: Point{Ref{"w1", "kube/packages"}, Begin, 0}, Fault: Kill, Must: true}
	other := Hit{Point: Point{Ref{"w1", "os/modules"}, Begin, 0}, Fault: Kill}
	down := Hit{Point: Point{Ref{"w1", "kube/packages"}, During, 0}, Fault: Power, Must: true}
	hits := []Hit{must, other, down, {Fault: Power}}
	want := func(when string, kills int, list ...Hit) {
		t.Helper()
		if got := n.missing(hits, Least{Kills: kills}); !slices.Equal(got, list) {
			t.Errorf("%s: %v, want %v", when, got, list)
		}
	}
	want("nothing was struck", 1, must, other, down)
	n.inject(Kill)
	want("enough kills", 1, must, down)
	n.hit(Kill, Ref{"w2", "kube/packages"})
	n.hit(Reboot, Ref{"w1", "kube/packages"})
	n.hit(Power, Ref{"w1", "os/modules"})
	want("too few kills, and no power cut", 2, other, down)
	n.hit(Power, Ref{"w2", "kube/packages"})
	want("too few kills", 2, other)
	want("all is well", 1)

	n = newTally()
	n.Steps = []string{"os/modules", "kube/packages", "cluster/init"}
	some := Least{Steps: 2}
	n.hit(Kill, Ref{"w1", "os/dpkg"}) // which only a fault brought
	n.hit(Kill, Ref{"w1", "os/modules"})
	if got := n.missing(hits, some); !slices.Equal(got, []Hit{must, down}) {
		t.Errorf("killed in one step of two: %v", got)
	}
	n.hit(Kill, Ref{"cp1", "cluster/init"})
	if got := n.missing(hits, some); !slices.Equal(got, []Hit{down}) {
		t.Errorf("killed in two other steps: %v", got)
	}
}
