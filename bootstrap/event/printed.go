package event

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/printable"
)

// Printed returns the event with all text printable, for terminals and for files that people read. JSON alone leaves
// some control characters as they are.
func (e Event) Printed() Event {
	for _, field := range []*string{&e.Host, &e.Step, &e.Reason, &e.Text} {
		*field = printable.Text(*field)
	}
	if len(e.Plan) > 0 {
		steps := make([]Planned, len(e.Plan))
		for i, p := range e.Plan {
			p.Host, p.Step, p.Title, p.Reason = printable.Text(p.Host), printable.Text(p.Step), printable.Text(p.Title), printable.Text(p.Reason)
			p.Needs = slices.Clone(p.Needs)
			for j, need := range p.Needs {
				p.Needs[j] = Ref{Host: printable.Text(need.Host), Step: printable.Text(need.Step)}
			}
			steps[i] = p
		}
		e.Plan = steps
	}
	return e
}
