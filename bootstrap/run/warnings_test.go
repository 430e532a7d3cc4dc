package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
)

// What steps warn of is collected over hosts, tries and engines, each warning once.
func TestWarnings(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.Warnings = &Warnings{}
	for range 2 {
		if _, err := f.Execute(t.Context(), graphOf(
			step("a", "one", `warning 'swap is on'; warning 'swap is on'`), step("b", "one", `warning 'swap is on'; warning other`), step("b", "two", `warning other`),
		)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string][]string{}
	for _, w := range f.Warnings.Take() {
		slices.Sort(w.Hosts)
		got[w.Text] = w.Hosts
	}
	if len(got) != 2 || !slices.Equal(got["swap is on"], []string{"a", "b"}) || !slices.Equal(got["other"], []string{"b"}) {
		t.Errorf("collected %v", got)
	}
	if told := f.told(event.Warning, event.Log); len(told) > 0 || len(f.Warnings.Take()) > 0 {
		t.Errorf("told again: %v", told)
	}
}

// Who attaches to a batch hears what it warned of.
func TestWarningsOfAnotherRun(t *testing.T) {
	f := newFleet(t, "a")
	if _, err := f.Execute(t.Context(), graphOf(step("a", "one", `warning 'swap is on'`))); err != nil {
		t.Fatal(err)
	}
	other := f.another("other")
	other.Warnings = &Warnings{}
	must(t, other.Attach(t.Context(), "a", f.batch(t, "a")))
	if got := fmt.Sprint(other.Warnings.Take()); got != "[{swap is on [a]}]" {
		t.Errorf("collected %s", got)
	}
}

// A host cannot fill the screen, nor keep others from being heard, and what it says is printable.
func TestWarningsOfALiar(t *testing.T) {
	var text strings.Builder
	fmt.Fprintf(&text, "B\ta\t0\n!\ta\t\x1b]0;title\x07%s\n!\tof no step\tx\n", strings.Repeat("x", 2*mostWarning))
	for i := range 1000 {
		fmt.Fprintf(&text, "!\ta\tnumber %d\n", i)
	}
	e := &Engine{Run: "r", Hosts: map[string]Host{"h": &liar{says: says(text.String() + "D\ta\t1\t1\tSTEP_FAILED\tno\nE\t1\n")}}, Warnings: &Warnings{},
		Script: func(string) ([]byte, error) { return nil, nil }}
	if _, err := e.Execute(t.Context(), graphOf(step("h", "a", "x"))); err == nil {
		t.Fatal("the step ended well")
	}
	e.Warnings.add("honest", "swap is on")
	got := e.Warnings.Take()
	if len(got) != mostWarnings+2 || got[0].Text != strings.Repeat("x", mostWarning)+" [cut]" || got[1].Text != "number 0" {
		t.Fatalf("collected %d: %.2000v", len(got), got)
	}
	if last := got[mostWarnings:]; last[0].Text != "swap is on" || fmt.Sprint(last[1]) != "{991 warnings more, which its log has [h]}" {
		t.Errorf("the last are %v", last)
	}
}
