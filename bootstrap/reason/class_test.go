package reason

import "testing"

// firstFree is beyond the statuses that shells give to what was ended by a signal: 128 and the signal's number, which is 64 at most.
const firstFree = 193

// TestClasses holds that an exit status tells the class: each reason's is in one, no status in two, and none is a shell's own.
func TestClasses(t *testing.T) {
	taken := map[int]Class{}
	for _, c := range Classes() {
		if c.Meaning == "" || len(Of(c.Class)) == 0 {
			t.Errorf("%s has no meaning or no reasons", c.Class)
		}
		for _, r := range c.Exits {
			for exit := r.First; exit <= r.Last; exit++ {
				if other, ok := taken[exit]; ok {
					t.Errorf("%d is in %s and in %s", exit, other, c.Class)
				}
				taken[exit] = c.Class
				if ClassOf(exit) != c.Class {
					t.Errorf("%d is in %s, not in %s", exit, ClassOf(exit), c.Class)
				}
				if exit > 125 && exit != 130 && exit < firstFree {
					t.Errorf("%s has %d, which shells give themselves", c.Class, exit)
				}
			}
		}
	}
	for _, g := range Generals() {
		if c, ok := taken[g.Exit]; ok {
			t.Errorf("%d is in %s and bound to no reason", g.Exit, c)
		}
	}
	for _, r := range Table() {
		if r.Class() == "" {
			t.Errorf("%s ends with %d, which is in no class", r.ID, r.Exit)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		class Class
		want  string
	}{{Machine, "35–39, 41–72, 89, 230–249"}, {Interrupted, "130"}} {
		for _, info := range Classes() {
			if info.Class == c.class && info.Ranges() != c.want {
				t.Errorf("%s has %q, want %q", c.class, info.Ranges(), c.want)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		word    string
		want    ID
		closest ID
	}{
		{"HOST_APT_LOCKED", HostAptLocked, ""},
		{"host-apt-locked", HostAptLocked, ""},
		{"Host_Apt-Locked", HostAptLocked, ""},
		{"65", HostAptLocked, ""},
		{"130", Cancelled, ""},
		{"HOST_APT_LOKED", "", HostAptLocked},
		{"apt-locked", "", HostAptLocked},
		{"nouveau", "", GPUNouveauBusy},
		{"0", "", ""},
		{"40", "", ""},
		{"", "", ""},
		{"entirely-something-else", "", ""},
	} {
		got, ok := Find(c.word)
		if got.ID != c.want || ok != (c.want != "") {
			t.Errorf("%q finds %q, want %q", c.word, got.ID, c.want)
		}
		if !ok && Closest(c.word) != c.closest {
			t.Errorf("%q is close to %q, want %q", c.word, Closest(c.word), c.closest)
		}
	}
}
