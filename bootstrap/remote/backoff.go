package remote

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to wait after a failed try, the first being number 1. It doubles from first up to most, of which
// between a half and the whole is waited: many hosts that fail together do not come back together.
func Backoff(try int, first, most time.Duration) time.Duration {
	d := min(first<<min(try-1, 16), most)
	return d/2 + rand.N(d/2)
}
