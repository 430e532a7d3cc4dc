package storm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNodesThatAreOut: one at a time is what was agreed. An answer that was cut off, or none, says nothing; who saw no node go saw nothing.
func TestNodesThatAreOut(t *testing.T) {
	nodes := func(out ...string) string {
		var items []string
		for _, name := range []string{"cp1", "w1"} {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"unschedulable":%v}}`, name, slices.Contains(out, name)))
		}
		return `{"kind":"NodeList","items":[` + strings.Join(items, ",") + `]}`
	}
	two := nodes("cp1", "w1")
	for name, c := range map[string]struct {
		answers []string
		want    string
	}{
		"in turn":       {[]string{nodes(), nodes("cp1"), nodes(), nodes("w1"), nodes()}, ""},
		"two":           {[]string{nodes("cp1"), two, nodes("w1")}, "out at the same time: cp1, w1"},
		"two, cut off":  {[]string{nodes("cp1"), two[:len(two)-2], nodes("w1")}, ""},
		"none":          {[]string{nodes(), nodes()}, "blind"},
		"nobody told":   {[]string{"", "Error from server"}, "blind"},
		"with an error": {[]string{"error"}, "blind"},
	} {
		o := outages{nodes: map[string]bool{}}
		for _, answer := range c.answers {
			var err error
			if answer == "error" {
				answer, err = nodes("cp1"), errors.New("the host went down")
			}
			o.look(answer, err)
		}
		switch err := o.verdict(); {
		case (err == nil) != (c.want == ""):
			t.Errorf("%s: %v", name, err)
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
