package plural

import "testing"

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 cards", 1: "1 card", 2: "2 cards"} {
		if got := Of(n, "card"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
