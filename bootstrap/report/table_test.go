package report

import (
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/graph"
)

// What is measured is what is printed: a byte that is no character or an escape sequence in somebody's name moves no column and breaks
// no command.
func TestWhatIsMeasuredIsPrinted(t *testing.T) {
	const odd, clean = "a\x1b]0;title\x07\xff\x1b[2J\xff\u200bb", "a\uFFFD\uFFFDb"
	for name, show := range map[string]func(p *Page, word string) error{
		"next": func(p *Page, word string) error {
			return PrintNext(p, [][2]string{{"kgpu status --inventory " + word + ".yaml", "hosts, nodes, cards, and who uses them"}, {"kgpu up", "makes them"}})
		},
		"users": func(p *Page, word string) error {
			return PrintUsers(p, []User{{Name: word, Namespace: word, Role: "edit"}, {Name: "b", Namespace: "c", Role: "view"}}, "")
		},
		"plan": func(p *Page, word string) error {
			step := func(id, title, why string) *graph.Step {
				return &graph.Step{Ref: graph.Ref{Host: "w1", ID: id}, Title: title, Reason: why}
			}
			return PrintPlan(p, &graph.Graph{Steps: []*graph.Step{step("os/one", "install "+word, word), step("os/two", "x", "not installed: "+word)}}, PlanOptions{})
		},
	} {
		for _, width := range []int{0, 60, 100} {
			shown := func(word string) string {
				sheet := &Sheet{As: Look{Width: width}}
				must(t, show(On(sheet), word))
				return sheet.String()
			}
			if got, want := shown(odd), shown(clean); got != want || !strings.Contains(got, clean) {
				t.Errorf("%s, %d columns:\n%s\nwant\n%s", name, width, got, want)
			}
		}
	}
}
