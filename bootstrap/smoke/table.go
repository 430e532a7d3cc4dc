package smoke

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is the proof, a row a card.
type Table struct{ Rows []Row }

// Row says which Job saw a card, or which Jobs share it.
type Row struct{ Node, Card, UUID, Job string }

// String is the table as a person reads it.
func (t *Table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tCARD\tUUID\tJOB")
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Node, r.Card, r.UUID, r.Job)
	}
	w.Flush() // a strings.Builder takes everything
	return b.String()
}
