package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	words := []string{"up", "plan", "reset", "os/swap", "gpu1", "gpu2", "HOST_APT_LOCKED"}
	for _, c := range []struct{ typed, want string }{
		{"upp", "up"},
		{"Plan", "plan"},
		{"paln", "plan"},
		{"rest", "reset"},
		{"os/swp", "os/swap"},
		{"gpu3", ""}, // another host
		{"gpo1", "gpu1"},
		{"host_apt_loked", "HOST_APT_LOCKED"},
		{"kubernetes", ""},
		{"x", ""},
		{"", ""},
		{strings.Repeat("up", maxWord), ""},
	} {
		if got := Word(c.typed, words); got != c.want {
			t.Errorf("%q is near %q, want %q", c.typed, got, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint("upp", []string{"up"}); got != ` Did you mean "up"?` {
		t.Errorf("got %q", got)
	}
	if got := Hint("kubernetes", []string{"up"}); got != "" {
		t.Errorf("got %q", got)
	}
}
