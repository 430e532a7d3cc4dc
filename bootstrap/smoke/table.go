package smoke

import (
	"slices"
	"strings"
)

// Table is the result of the proof, with a row for each GPU.
type Table struct{ Rows []Row }

// Row says which Jobs saw a GPU, or which pods may hold it. Either Job or Held is empty.
type Row struct {
	Node, Card, UUID string
	Job              string
	Holders          []string // pods, namespace/name, one of which holds the GPU
}

// By says for people who saw the GPU.
func (r Row) By() string {
	if len(r.Holders) > 0 {
		return "held by " + list(r.Holders) + ", not tried"
	}
	return r.Job
}

// AddHolder adds to the table which GPUs a pod of this namespace holds that had them before the proof.
func (t *Table) AddHolder(namespace, as string, uuids []string) {
	of := func(pod string) bool { return strings.HasPrefix(pod, namespace+"/") }
	mine := func(r Row) bool { return slices.Contains(uuids, r.UUID) && slices.ContainsFunc(r.Holders, of) }
	if !slices.ContainsFunc(t.Rows, mine) {
		return // the pod was replaced and has another GPU now
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if mine(*r) {
			r.Job, r.Holders = as, nil
		} else if len(r.Holders) > 1 {
			r.Holders = slices.DeleteFunc(r.Holders, of)
		}
	}
}
