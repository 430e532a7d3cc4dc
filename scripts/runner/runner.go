// Package runner holds the scripts that the engine lives on. Three travel with every batch of steps: start.sh makes a
// systemd unit of the batch, runner.sh is that unit, follow.sh prints what it does. Two concern the whole run: lock.sh
// keeps the cluster for one operator, watch.sh tells another what happens.
// receive.sh is how a batch comes to a host.
package runner

import _ "embed"

// Receive unpacks the batch on its stdin and starts it: `bash -c` with it, a name for it, DIRECTORY and BATCH.
//
//go:embed receive.sh
var Receive []byte

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

// Hold holds the cluster for one run; it wants to be the beginning of the standard input of `bash -s DIRECTORY SECONDS`.
//
//go:embed lock.sh
var Lock []byte

// Watch tells what runs on a host; it wants to be the beginning of the standard input of `bash -s DIRECTORY SECONDS`.
//
//go:embed watch.sh
var Watch []byte
