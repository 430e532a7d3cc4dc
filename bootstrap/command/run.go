// Package command is what people type: a file for each command, with its flags, and what they share. Each reads the
// inventory, sets up the report, and lets package bootstrap tell the story, or package records one of the past.
package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// Run runs the application, tells on standard error why it failed, and returns the exit status.
func Run(ctx context.Context, app *cli.App, args []string) int {
	if len(args) > 1 && args[1] == completeWord {
		complete(printable.Writer(app.Writer), app, args[2:])
		return reason.ExitOK
	}
	if len(args) == 3 && args[1] == "--version" && args[2] == "-v" {
		args = args[:2] // -v is the same here, and all there is to say is said
	}
	err := app.RunContext(ctx, flagsFirst(app, args))
	status := exitStatus(err)
	var invalid inventory.Errors
	var other *access.ExitError
	switch {
	case err == nil, status == reason.ExitPending, errors.Is(err, errFound), errors.As(err, &other): // all is said
	case status == reason.ExitUsage:
		text := err.Error()
		if !strings.HasPrefix(text, "kgpu ") { // which names the command, too
			text = "kgpu: " + text
		}
		fmt.Fprintln(report.On(app.ErrWriter), text)
	case errors.As(err, &invalid): // file:line:column first, as editors want it
		fmt.Fprintln(report.On(app.ErrWriter), invalid)
	default:
		report.PrintError(app.ErrWriter, err)
	}
	return status
}

// exitStatus is kgpu's, after this error.
func exitStatus(err error) int {
	var other *access.ExitError
	switch {
	case err == nil:
		return reason.ExitOK
	case errors.As(err, &other):
		return other.Status // that of a program which has said why
	case errors.Is(err, errPending), errors.Is(err, errNotWell), errors.Is(err, errWarned):
		return reason.ExitPending
	case errors.Is(err, errFound):
		return reason.ExitFound
	}
	return reason.ExitStatus(err)
}

func usagef(format string, args ...any) error {
	return reason.Usagef(format, args...)
}
