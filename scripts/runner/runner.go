// Package runner holds the three scripts that travel with every batch of steps: start.sh makes a systemd unit of the
// batch, runner.sh is that unit, follow.sh prints what it does.
package runner

import _ "embed"

// Start starts the batch it lies in and follows it.
//
//go:embed start.sh
var Start []byte

// Runner runs the steps of the batch it lies in.
//
//go:embed runner.sh
var Runner []byte

// Follow prints a batch's events from a byte offset on: follow.sh BATCH OFFSET.
//
//go:embed follow.sh
var Follow []byte
