package bootstrap

import (
	"testing"
	"time"
)

// A clock is wrong only by what the time that the question took does not explain.
func TestSkew(t *testing.T) {
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ended := begun.Add(3 * time.Second)
	for clock, want := range map[time.Time]time.Duration{
		begun: 0, begun.Add(time.Second): 0, ended: 0,
		begun.Add(-time.Hour): -time.Hour, ended.Add(time.Hour): time.Hour,
	} {
		if got := skew(clock, begun, ended); got != want {
			t.Errorf("%s read from %s to %s: %s, want %s", clock, begun, ended, got, want)
		}
	}
}
