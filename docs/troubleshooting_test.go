package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// reasonMark stands where the reasons of a class belong, and before those that were written there.
var reasonMark = regexp.MustCompile(`(?m)^<!-- reasons: ([a-z]+) -->\n(?:\n- \[.*\n(?:- .*\n)*)?`)

// TestTroubleshooting holds that each class of reasons has its place in the page, with every reason that there is.
func TestTroubleshooting(t *testing.T) {
	const page = "troubleshooting.md"
	placed := map[string]bool{}
	want := reasonMark.ReplaceAllStringFunc(read(t, page), func(mark string) string {
		class := reasonMark.FindStringSubmatch(mark)[1]
		placed[class] = true
		var b strings.Builder
		fmt.Fprintf(&b, "<!-- reasons: %s -->\n\n", class)
		for _, r := range reason.Of(reason.Class(class)) {
			fmt.Fprintf(&b, "- [`%s`](reasons.md#%s): %s\n", r.ID, class, firstSentence(r.Meaning))
		}
		return b.String()
	})
	for _, c := range reason.Classes() {
		if !placed[string(c.Class)] {
			t.Errorf("%s has no place for the reasons of the class %s", page, c.Class)
		}
	}
	for _, r := range reason.Table() {
		if n := strings.Count(want, "\n- [`"+string(r.ID)+"`]"); n != 1 {
			t.Errorf("%s has %s %d times", page, r.ID, n)
		}
	}
	made(t, page, want)
}

func firstSentence(text string) string {
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}
