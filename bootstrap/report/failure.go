package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// byName is how to go on in spite of what preflight found.
const byName = "`--ignore REASON`, or `preflight: {ignore: [REASON]}` in the inventory"

// PrintError writes every failure in err for a person: where, during what, what went wrong, the end of the output, the
// reason's ID and what to do. What is the same on several hosts is told once, and so is advice that is the same. An error
// without a reason is written as it is. Behind what preflight found stands how to ignore it.
func PrintError(w io.Writer, err error) {
	p := On(w)
	all := together(atOnce(failures(err)))
	found := false // by preflight
	for i, e := range all {
		known, ok := e.(*reason.Error)
		if !ok {
			p.say(red, "error:", " "+e.Error())
			continue
		}
		printReason(p, known)
		found = found || known.Doing == preflight.Doing
		if advice := known.AdviceLine(); advice != "" && (i == len(all)-1 || advice != adviceOf(all[i+1])) {
			p.say(bold, "  →", " "+printable.Line(advice))
		}
	}
	if found {
		p.say(dim, "What preflight found can be ignored by its name in brackets: "+byName+".", "")
	}
}

// adviceOf is what is said below an error.
func adviceOf(err error) string {
	if e, ok := err.(*reason.Error); ok {
		return e.AdviceLine()
	}
	return ""
}

// together makes one error of those that say the same of several hosts, and puts those one below the other that have the same
// reason and advice. The first keeps its place.
func together(all []error) []error {
	type kind struct {
		id     reason.ID
		advice string
	}
	type words struct {
		kind
		step, doing, found, stderr string
	}
	var order []kind
	of, same := map[kind][]error{}, map[words]*reason.Error{}
	for _, err := range all {
		k := kind{advice: err.Error()}
		if e, ok := err.(*reason.Error); ok {
			k = kind{e.ID, e.AdviceLine()}
			w := words{k, e.Step, e.Doing, found(e), e.Stderr}
			if first := same[w]; first != nil && e.Host != "" && first.Host != "" {
				if !slices.Contains(strings.Split(first.Host, ", "), e.Host) {
					first.Host += ", " + e.Host
				}
				continue
			}
			one := *e
			same[w], err = &one, &one
		}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], err)
	}
	var out []error
	for _, k := range order {
		out = append(out, of[k]...)
	}
	return out
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

// found is what went wrong, in words.
func found(e *reason.Error) string {
	text := printable.Text(e.What())
	if e.Exit != nil {
		text += fmt.Sprintf(" (exit status %d)", *e.Exit)
	}
	return text
}

func printReason(p *Page, e *reason.Error) {
	where := printable.Line(printable.Join(": ", e.Host, e.Step, e.Doing))
	if where != "" {
		where += ": "
	}
	p.say(red, "error:", fmt.Sprintf(" %s%s [%s]", where, indented(found(e), "  "), e.ID))
	if tail := strings.TrimRight(printable.Text(e.Stderr), "\n "); tail != "" && e.Step == "" { // of a step, the run has shown it already
		p.say(dim, "    | "+strings.ReplaceAll(tail, "\n", "\n    | "), "")
	}
}

func indented(s, by string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+by) }
