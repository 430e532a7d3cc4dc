package duration

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		write func(time.Duration) string
		want  map[time.Duration]string
	}{
		{"Short", Short, map[time.Duration]string{0: "0s", 1499 * time.Microsecond: "1ms", 1540 * ms: "1.5s", 59900 * ms: "59.9s", 123400 * ms: "2m3s", 2 * time.Hour: "2h0m0s"}},
		{"Long", Long, map[time.Duration]string{
			0: "0 ms", 999 * ms: "999 ms", 1000 * ms: "1.0 s", 59940 * ms: "59.9 s", 60000 * ms: "1 min 0 s", 3599600 * ms: "1 h 0 min", 3723000 * ms: "1 h 2 min",
		}},
		{"Age", Age, map[time.Duration]string{-time.Second: "0s", 119 * time.Second: "119s", 120 * time.Second: "2m", 2 * time.Hour: "2h", 47 * time.Hour: "47h", 50 * time.Hour: "2d"}},
		{"Clock", Clock, map[time.Duration]string{-time.Second: "0:00", 1999 * ms: "0:01", 123 * time.Second: "2:03", 3723 * time.Second: "1:02:03"}},
	} {
		for d, want := range c.want {
			if got := c.write(d); got != want {
				t.Errorf("%s of %v is %q, want %q", c.name, d, got, want)
			}
		}
	}
}
