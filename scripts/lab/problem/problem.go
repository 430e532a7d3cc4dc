// Package problem is the form in which the lab reports that something failed.
package problem

import "strings"

// Problem is one failure: where, while doing what, a stable reason to search
// for, and what to do about it.
type Problem struct {
	Host   string // empty when no single host is concerned
	Step   string // what was being done
	Reason string // stable identifier, such as LAB_HOST_ENDED
	Advice string // one line
	Err    error
}

func (p *Problem) Error() string {
	var b strings.Builder
	if p.Host != "" {
		b.WriteString(p.Host + ": ")
	}
	b.WriteString(p.Step)
	if p.Err != nil {
		b.WriteString(": " + p.Err.Error())
	}
	b.WriteString(" [" + p.Reason + "]")
	if p.Advice != "" {
		b.WriteString("\n  " + p.Advice)
	}
	return b.String()
}

func (p *Problem) Unwrap() error { return p.Err }
