package smoke

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table is the proof, a row a card.
type Table struct{ Rows []Row }

// Row says which Job saw a card, or which Jobs share it, or who has it. One of the two is empty.
type Row struct {
	Node, Card, UUID string
	Job              string
	Held             []string // pods, namespace/name: one of them has the card
}

// By is who saw the card, for people.
func (r Row) By() string {
	if len(r.Held) > 0 {
		return "held by " + list(r.Held) + ", not tried"
	}
	return r.Job
}

// Seen notes that a pod of this namespace, which had cards before the proof, tells which ones.
func (t *Table) Seen(namespace, as string, uuids []string) {
	of := func(pod string) bool { return strings.HasPrefix(pod, namespace+"/") }
	mine := func(r Row) bool { return slices.Contains(uuids, r.UUID) && slices.ContainsFunc(r.Held, of) }
	if !slices.ContainsFunc(t.Rows, mine) {
		return // it is another pod now, with another card
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if mine(*r) {
			r.Job, r.Held = as, nil
		} else if len(r.Held) > 1 {
			r.Held = slices.DeleteFunc(r.Held, of)
		}
	}
}

// String is the table as a person reads it.
func (t *Table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tCARD\tUUID\tJOB")
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Node, r.Card, r.UUID, r.By())
	}
	w.Flush() // a strings.Builder takes everything
	return b.String()
}
