package inventory

import (
	"testing"
	"time"
)

// TestPeriod: of days that are named the longest pause counts, over the end of the week, too.
func TestPeriod(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[Schedule]time.Duration{
		"": 0, "hourly": time.Hour, "daily": day, "weekly": 7 * day, "02:30": day, "Sun 04:00": 7 * day, "Mon,Tue,Wed,Thu,Fri 02:30": 3 * day, "Thu,Mon 02:30": 4 * day,
		"Sat,Sun 02:30": 6 * day,
	} {
		if got := s.Period(); got != want {
			t.Errorf("%q: %s, not %s", s, got, want)
		}
	}
}
