package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// byName is how to go on in spite of what preflight found.
const byName = "`--ignore REASON`, or `preflight: {ignore: [REASON]}` in the inventory"

// PrintError writes every failure in err for a person: where, during what, what went wrong, the end of the output, the
// reason's ID and what to do. An error without a reason is written as it is. Behind what preflight found stands how to ignore
// it.
func PrintError(w io.Writer, err error) {
	w = printable.Writer(w)
	all := atOnce(failures(err))
	found := false
	for i, e := range all {
		known, ok := e.(*reason.Error)
		if !ok {
			fmt.Fprintf(w, "error: %v\n", e)
			continue
		}
		printReason(w, known)
		found = found || known.Doing == preflight.Doing
		if advice := known.AdviceLine(); advice != "" && (i == len(all)-1 || advice != adviceOf(all[i+1])) {
			fmt.Fprintf(w, "  → %s\n", advice)
		}
	}
	if found {
		fmt.Fprintln(w, "What preflight found can be ignored by its name in brackets: "+byName+".")
	}
}

// adviceOf is what is said below an error.
func adviceOf(err error) string {
	if e, ok := err.(*reason.Error); ok {
		return e.AdviceLine()
	}
	return ""
}

// atOnce makes one error of those of the hosts and steps that were cut short: somebody who stops kgpu knows that, and not where.
func atOnce(all []error) []error {
	cut := func(err error) bool {
		e, ok := err.(*reason.Error)
		return ok && e.ID == reason.Cancelled
	}
	first := slices.IndexFunc(all, cut)
	one, hosts := reason.Error{ID: reason.Cancelled}, []string(nil)
	for _, err := range all {
		if !cut(err) {
			continue
		}
		e := err.(*reason.Error)
		if e.Host != "" && !slices.Contains(hosts, e.Host) {
			hosts = append(hosts, e.Host)
		}
		one.Detail = cmp.Or(one.Detail, e.Detail)
		if e.Step != "" {
			one.Detail = "cancelled; what was begun goes on there, and nothing more is started"
		}
	}
	if len(hosts) < 2 {
		return all
	}
	one.Host = strings.Join(hosts, ", ")
	all[first] = &one
	return slices.DeleteFunc(all, func(err error) bool { return cut(err) && err != error(&one) })
}

// failures takes joined errors apart, down to those with a reason.
func failures(err error) []error {
	switch x := err.(type) {
	case nil:
		return nil
	case *reason.Error:
		return []error{x}
	case interface{ Unwrap() []error }:
		var out []error
		for _, e := range x.Unwrap() {
			out = append(out, failures(e)...)
		}
		return out
	}
	if inner := errors.Unwrap(err); len(reason.All(inner)) > 0 {
		return failures(inner)
	}
	return []error{err}
}

func printReason(w io.Writer, e *reason.Error) {
	where := printable.Line(joinBy(": ", e.Host, e.Step, e.Doing))
	if where != "" {
		where += ": "
	}
	found := e.Detail
	if found == "" && e.Err != nil {
		found = e.Err.Error()
	}
	if found == "" {
		found = "failed"
	}
	found = printable.Text(found)
	if e.Exit != nil {
		found += fmt.Sprintf(" (exit status %d)", *e.Exit)
	}
	fmt.Fprintf(w, "error: %s%s [%s]\n", where, indented(found, "  "), e.ID)
	if tail := strings.TrimRight(printable.Text(e.Stderr), "\n "); tail != "" && e.Step == "" { // of a step, the run has shown it already
		fmt.Fprintf(w, "    | %s\n", strings.ReplaceAll(tail, "\n", "\n    | "))
	}
}

func indented(s, by string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+by) }
