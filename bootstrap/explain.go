package bootstrap

import (
	"io"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Explain writes what a reason means, or an exit status, for a person or as JSON. Without a word it writes about all reasons.
func Explain(w io.Writer, word string, json bool) error {
	if word == "" {
		if json {
			return report.ReasonsJSON(w, reason.Table())
		}
		return report.PrintReasons(w)
	}
	if r, ok := reason.Find(word); ok {
		if json {
			return report.ReasonsJSON(w, []reason.Reason{r})
		}
		return report.PrintReason(w, r)
	}
	if exit, err := strconv.Atoi(word); err == nil {
		for _, g := range reason.Generals() {
			if g.Exit == exit && !json {
				return report.PrintGeneral(w, g)
			}
		}
		return reason.Usagef("no reason has the exit status %d (kgpu explain lists them)", exit)
	}
	if near := reason.Closest(word); near != "" {
		return reason.Usagef("no reason %q. Did you mean %q? (kgpu explain lists them)", word, near)
	}
	return reason.Usagef("no reason %q (kgpu explain lists them)", word)
}
