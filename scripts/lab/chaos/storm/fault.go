package storm

import (
	"context"
	"fmt"
	"time"
)

// The faults.
const (
	Kill   = "kill"   // kill -9 of kgpu
	Reboot = "reboot" // an orderly reboot of the host
	Power  = "power"  // a power cut; the host comes back after a pause
	Cut    = "cut"    // the host's network drops everything for some time
	Lock   = "lock"   // unattended-upgrades holds the package manager's lock for some time
	Unit   = "unit"   // the unit in which kgpu's batch runs is killed
	Dpkg   = "dpkg"   // dpkg is killed, where it runs
)

// fault is what strikes. strike returns when the fault is over.
type fault struct {
	lasts  []time.Duration // how long it may last; none: it has no duration
	down   bool            // the host, or kgpu's unit on it, goes down: what runs there does not end
	strike func(ctx context.Context, l *Lab, host string, lasting time.Duration) error
}

// faults are all of them but Kill, which strikes kgpu itself and no host.
var faults = map[string]fault{
	Kill: {},
	Reboot: {down: true, strike: func(ctx context.Context, l *Lab, host string, _ time.Duration) error {
		_, err := l.verb(ctx, "reboot", host)
		return err
	}},
	Power: {lasts: []time.Duration{0, time.Second, 5 * time.Second}, down: true,
		strike: func(ctx context.Context, l *Lab, host string, lasting time.Duration) error {
			return between(ctx, lasting, func(ctx context.Context, verb string) error {
				_, err := l.verb(ctx, verb, host)
				return err
			}, "kill", "start")
		}},
	Cut: {lasts: []time.Duration{3 * time.Second, 10 * time.Second, 25 * time.Second},
		strike: func(ctx context.Context, l *Lab, host string, lasting time.Duration) error {
			return between(ctx, lasting, func(ctx context.Context, verb string) error {
				_, err := l.verb(ctx, verb, host)
				return err
			}, "cut", "heal")
		}},
	Lock: {lasts: []time.Duration{2 * time.Second, 6 * time.Second},
		strike: func(ctx context.Context, l *Lab, host string, lasting time.Duration) error {
			_, err := l.verb(ctx, "exec", host, "perl", "-e", holdLock, fmt.Sprint(lasting.Seconds()))
			return err
		}},
	Unit: {down: true, strike: func(ctx context.Context, l *Lab, host string, _ time.Duration) error {
		_, err := l.exec(ctx, host, "systemctl kill --signal=KILL 'kgpu-*.service' || :") // the same
		return err
	}},
	Dpkg: {strike: func(ctx context.Context, l *Lab, host string, _ time.Duration) error {
		_, err := l.exec(ctx, host, "pkill -KILL -x dpkg || :") // it may have ended this very moment
		return err
	}},
}

// holdLock waits for the lock as apt does, by fcntl, and holds it under the name of Debian's own upgrades.
const holdLock = `$0 = "unattended-upgr";
open(my $f, ">>", "/var/lib/dpkg/lock-frontend") or die $!;
my $lock = pack("s s x4 q q i x4", 1, 0, 0, 0, 0); # F_WRLCK
fcntl($f, 7, $lock) or die $!; # F_SETLKW
select(undef, undef, undef, $ARGV[0]);`

// between does the first thing and, after some time, the second, which is done in any case.
func between(ctx context.Context, lasting time.Duration, do func(context.Context, string) error, first, second string) error {
	if err := do(ctx, first); err != nil {
		return err
	}
	select {
	case <-time.After(lasting):
	case <-ctx.Done():
	}
	return do(context.WithoutCancel(ctx), second)
}
