package remote

import (
	"testing"
	"time"
)

func TestBackoffGrowsAndScatters(t *testing.T) {
	for try, most := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 3: 8 * time.Second, 6: time.Minute, 60: time.Minute} {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := Backoff(try, 2*time.Second, time.Minute)
			if d < most/2 || d > most {
				t.Errorf("try %d waits %s", try, d)
			}
			seen[d] = true
		}
		if len(seen) < 50 {
			t.Errorf("try %d: only %d different pauses of 100", try, len(seen))
		}
	}
}
