package e2e

import (
	"path"
	"strings"
)

// leftover is a change on a host that a test accepts: a glob over the change without its value, and why.
type leftover struct{ change, reason string }

// afterReset is all that kgpu up followed by kgpu reset may leave on a host.
var afterReset = []leftover{}

// unexplained are the lines of a diff that no leftover accepts.
func unexplained(diff string, allowed []leftover) []string {
	var out []string
next:
	for _, line := range lines(diff) {
		change, _, _ := strings.Cut(line, "  ")
		for _, a := range allowed {
			if ok, _ := path.Match(a.change, change); ok {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}
