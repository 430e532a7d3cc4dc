package storm

import (
	"errors"
	"strings"
	"testing"
)

// TestNodesThatAreOut: one at a time is what was agreed. An answer that was cut off, or none, says nothing; who saw no node go saw nothing.
func TestNodesThatAreOut(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		want    string
	}{
		"in turn":       {[]string{"told\n", "cp1\ntold\n", "told\n", "w1\ntold\n", "told\n"}, ""},
		"two":           {[]string{"cp1\ntold\n", "cp1\nw1\ntold\n", "w1\ntold\n"}, "out at the same time: cp1, w1"},
		"two, cut off":  {[]string{"cp1\ntold\n", "cp1\nw1\n", "w1\ntold\n"}, ""},
		"none":          {[]string{"told\n", "told\n"}, "blind"},
		"nobody told":   {[]string{"", "cp1\n"}, "blind"},
		"with an error": {[]string{"error"}, "blind"},
	} {
		o := outages{nodes: map[string]bool{}}
		for _, answer := range c.answers {
			var err error
			if answer == "error" {
				answer, err = "cp1\ntold\n", errors.New("the host went down")
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
