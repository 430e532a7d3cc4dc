package timeline

import (
	"time"

	"kgpu.dev/kgpu/bootstrap/text/duration"
)

// Tick is a mark of the time axis.
type Tick struct {
	At    int64 // milliseconds
	Label string
}

// intervals are the distances between ticks that people find natural, in seconds.
var intervals = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400}

// ticks are at most so many marks of an axis of this length.
func ticks(total int64, most int) []Tick {
	step := intervals[len(intervals)-1] * 1000
	for _, seconds := range intervals {
		if total/(seconds*1000) < int64(most) {
			step = seconds * 1000
			break
		}
	}
	for total/step >= int64(most) { // a run of weeks
		step *= 2
	}
	var out []Tick
	for at := int64(0); at <= total; at += step {
		out = append(out, Tick{at, clock(at)})
	}
	return out
}

func clock(ms int64) string { return duration.Clock(time.Duration(ms) * time.Millisecond) }

func long(ms int64) string { return duration.Long(time.Duration(ms) * time.Millisecond) }
