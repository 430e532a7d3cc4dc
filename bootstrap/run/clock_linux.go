package run

import "golang.org/x/sys/unix"

// sleeplessClock goes on while the machine sleeps: clock_gettime(2).
const sleeplessClock = unix.CLOCK_BOOTTIME
