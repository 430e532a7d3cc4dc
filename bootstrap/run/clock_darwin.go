package run

import "golang.org/x/sys/unix"

// sleeplessClock goes on while the machine sleeps, and nobody sets it: on macOS it is mach_continuous_time, as clock_gettime in
// Apple's Libc has it, where CLOCK_UPTIME_RAW, which Go's clock is, stands still.
const sleeplessClock = unix.CLOCK_MONOTONIC_RAW
