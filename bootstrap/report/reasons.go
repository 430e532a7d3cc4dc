package report

import (
	"encoding/json"
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
	_, err := fmt.Fprintf(On(w), "exit status %d: %s\n", g.Exit, g.Meaning)
	return err
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
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// ReasonsMarkdown is the page of the documentation about reasons and exit statuses.
func ReasonsMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Reasons and exit statuses

<!-- Made from bootstrap/reason by go test ./docs -update: change it there. -->

Every failure that kgpu knows has a name, its reason. kgpu prints it in brackets behind what happened, with one line of
advice. ` + "`kgpu explain`" + ` lists all of them, ` + "`kgpu explain HOST_APT_LOCKED`" + ` tells about one, and ` + "`kgpu explain 65`" + ` about the one with
that exit status. Names and exit statuses stay as they are from one version of kgpu to the next.

## Exit statuses

A run that fails for one reason, on however many hosts, ends with the exit status of that reason. Each has its own, and
belongs to a class, whose range is never given to another one.

| exit status | meaning |
|---|---|
`)
	for _, g := range reason.Generals() {
		fmt.Fprintf(&b, "| %d | %s |\n", g.Exit, cell(g.Meaning))
	}
	b.WriteString("\n| exit status | class | meaning |\n|---|---|---|\n")
	for _, c := range reason.Classes() {
		fmt.Fprintf(&b, "| %s | [%s](#%s) | %s |\n", c.Ranges(), c.Class, c.Class, cell(c.Meaning))
	}
	for _, c := range reason.Classes() {
		fmt.Fprintf(&b, "\n## %s\n\n| exit | reason | what it means | what to do |\n|---|---|---|---|\n", c.Class)
		for _, r := range reason.Of(c.Class) {
			fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", r.Exit, r.ID, cell(r.Meaning), cell(r.Advice))
		}
	}
	return b.String()
}

// cell makes text the content of a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func firstSentence(text string) string {
	first, _, more := strings.Cut(text, ". ")
	if more {
		first += "."
	}
	return first
}
