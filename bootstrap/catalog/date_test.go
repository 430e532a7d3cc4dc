package catalog

import (
	"testing"
	"time"
)

func TestAged(t *testing.T) {
	for _, c := range []struct {
		now  time.Time
		want bool
	}{
		{AsOf.AddDate(-1, 0, 0), false}, {AsOf, false}, {AsOf.AddDate(0, 6, 0), false}, {AsOf.AddDate(0, 6, 1), true},
	} {
		if got := Aged(c.now); got != c.want {
			t.Errorf("on %s it is aged: %t", c.now.Format(time.DateOnly), got)
		}
	}
}
