package report

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Wrapped breaks a text between words, where it is wider than a terminal of that width; zero: it is not. Its further lines
// begin with indent. Names and paths stay whole, or they could not be copied.
func Wrapped(text string, width int, indent string) string {
	if first, rest, more := strings.Cut(text, "\n"); more {
		return Wrapped(first, width, indent) + "\n" + Wrapped(rest, width, indent)
	}
	if width == 0 || ansi.StringWidthWc(text) <= width {
		return text
	}
	words := strings.Split(text, " ")
	lines := []string{words[0]}
	for _, word := range words[1:] {
		last := len(lines) - 1
		if longer := lines[last] + " " + word; strings.TrimSpace(lines[last]) == "" || ansi.StringWidthWc(longer) <= width {
			lines[last] = longer
		} else {
			lines = append(lines, indent+word)
		}
	}
	return strings.Join(lines, "\n")
}
