package docs

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

var update = flag.Bool("update", false, "write the pages that are made from the sources")

// TestReasons holds that the page about reasons is the one that the table makes.
func TestReasons(t *testing.T) {
	made(t, "reasons.md", reasonsPage())
}

// reasonsPage is the page of the documentation about reasons and exit statuses.
func reasonsPage() string {
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
