package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with an inventory.
type Problem struct {
	File       string
	Line       int // from 1; 0 when the problem has no place in the file
	Column     int // from 1, in characters
	Path       string
	Message    string
	Suggestion string // what the user probably meant; may be empty
}

// String is file:line:col: path: message (did you mean "x"?).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", p.Suggestion)
	}
	return b.String()
}

// Errors is everything that is wrong with an inventory, in the order of the file. Load and Decode wrap it into a
// reason.Error; errors.As finds it.
type Errors []Problem

// Error has one line per problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders problems by position and drops repetitions.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

// hint is an error with a suggestion.
type hint struct{ message, suggestion string }

func (h hint) Error() string { return h.message }
