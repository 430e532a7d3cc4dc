package inventory

import (
	"fmt"
	"time"
)

// Timeouts are how long kgpu waits each time for what passes by itself.
type Timeouts struct {
	Link      time.Duration // for a host that is cut off; default 10m
	Reboot    time.Duration // for a host that goes down and comes back; default 15m
	Lock      time.Duration // for the package manager's locks; default 30m
	Transient time.Duration // the pauses between the tries of a step; default 5m
}

// DefaultTimeouts are those of an inventory that names none.
func DefaultTimeouts() Timeouts {
	return Timeouts{Link: 10 * time.Minute, Reboot: 15 * time.Minute, Lock: 30 * time.Minute, Transient: 5 * time.Minute}
}

// maxTimeout bounds a typing error: nobody looks at a run that has waited for a day.
const maxTimeout = 24 * time.Hour

func timeoutsKeys() keys[Timeouts] {
	return keys[Timeouts]{
		"link":      rawValue(func(t *Timeouts) *time.Duration { return &t.Link }, timeout),
		"reboot":    rawValue(func(t *Timeouts) *time.Duration { return &t.Reboot }, timeout),
		"lock":      rawValue(func(t *Timeouts) *time.Duration { return &t.Lock }, timeout),
		"transient": rawValue(func(t *Timeouts) *time.Duration { return &t.Transient }, timeout),
	}
}

func timeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a time such as 90s, 10m or 1h30m", shown(s))
	case d <= 0 || d > maxTimeout:
		return 0, fmt.Errorf("must be more than 0s and at most 24h, is %s", s)
	}
	return d, nil
}
