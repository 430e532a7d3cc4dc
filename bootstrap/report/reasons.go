package report

import (
	"fmt"
	"io"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// PrintReasons writes every reason, a line each, by class.
func PrintReasons(w io.Writer) error {
	p := On(w)
	for _, c := range reason.Classes() {
		p.say(bold, string(c.Class)+":", fmt.Sprintf(" %s (exit %s)", c.Meaning, c.Ranges()))
		var rows [][]string
		for _, r := range reason.Of(c.Class) {
			rows = append(rows, []string{fmt.Sprint(r.Exit), string(r.ID), firstSentence(r.Meaning)})
		}
		p.columns(rows)
		p.say(plain, "", "")
	}
	p.say(bold, "Other exit statuses:", "")
	for _, g := range reason.Generals() {
		p.say(plain, "", fmt.Sprintf("  %-3d  %s", g.Exit, g.Meaning))
	}
	return p.to.err
}

// PrintReason writes all that there is to say about a reason.
func PrintReason(w io.Writer, r reason.Reason) error {
	p := On(w)
	p.say(bold, string(r.ID), fmt.Sprintf(" (exit status %d, class %s)", r.Exit, r.Class()))
	p.say(plain, "", "\n"+r.Meaning+"\n")
	p.say(bold, "→", " "+r.Advice)
	return p.to.err
}

// PrintGeneral writes what an exit status means that is bound to no reason.
func PrintGeneral(w io.Writer, g reason.General) error {
	return printed(w, "exit status %d: %s\n", g.Exit, g.Meaning)
}

type jsonReason struct {
	ID      reason.ID    `json:"id"`
	Exit    int          `json:"exit"`
	Class   reason.Class `json:"class"`
	Meaning string       `json:"meaning"`
	Advice  string       `json:"advice"`
}

// ReasonsJSON writes reasons as one JSON array.
func ReasonsJSON(w io.Writer, reasons []reason.Reason) error {
	out := make([]jsonReason, 0, len(reasons))
	for _, r := range reasons {
		out = append(out, jsonReason{r.ID, r.Exit, r.Class(), r.Meaning, r.Advice})
	}
	return writeJSON(w, out)
}

func firstSentence(text string) string {
	first, _, more := strings.Cut(text, ". ")
	if more {
		first += "."
	}
	return first
}
