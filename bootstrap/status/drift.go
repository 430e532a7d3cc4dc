package status

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// PendingSteps is what `kgpu up` would do, by host ID.
type PendingSteps struct {
	Steps   map[string][]Step
	Refused map[string]machine.Verdict // hosts that kgpu must not change
	Known   bool
	Err     error // why the steps are unknown; also nil if no control plane could be asked
}

// Planner plans `kgpu up` for an inventory and the facts of its hosts, by host ID.
type Planner func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error)

// PlanPending returns what `kgpu up` would do on the hosts with facts. It is unknown if no control plane has facts.
func PlanPending(inv *inventory.Inventory, hosts []Observed, up Planner) *PendingSteps {
	t := &PendingSteps{Steps: map[string][]Step{}, Refused: map[string]machine.Verdict{}}
	seen, control := factsOf(hosts)
	if !control {
		return t
	}
	for id, verdict := range machine.SetOf(inv, seen).Verdicts() {
		if verdict.Refused != "" {
			t.Refused[id] = verdict
		}
	}
	g, err := up(inv, seen)
	if err != nil {
		t.Err = err
		return t
	}
	t.Known = true
	for _, s := range g.Steps {
		t.Steps[s.Host] = append(t.Steps[s.Host], Step{oneLine(s.ID), oneLine(s.Title), oneLine(s.Reason)})
	}
	return t
}

// factsOf returns the facts of the hosts by ID, and whether a control plane is among them.
func factsOf(hosts []Observed) (seen map[string]*facts.Host, control bool) {
	seen = map[string]*facts.Host{}
	for _, s := range hosts {
		if s.Facts != nil {
			seen[s.Host.ID()] = s.Facts
			control = control || s.Host.IsControlPlane()
		}
	}
	return seen, control
}

// skew reports a node with another version than the cluster, which `kgpu up` does not change.
func (j *reporter) skew(h *Host) {
	if text, ok := j.skewed[h.Host]; ok {
		j.problem(h.Host, "", text, skewAdvice(h))
	}
}

func skewAdvice(h *Host) string {
	if h.Role == string(inventory.ControlPlane) {
		return "bring its packages to the version of its API server by hand, as https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/ says"
	}
	return "`kgpu remove-worker " + h.Host + "` drains it and takes it out, `kgpu add-worker " + h.Address + "` joins it again with the cluster's version"
}

// shownSteps is how many steps the text of a problem names. The report lists all.
const shownSteps = 3

// drift reports what `kgpu up` would do on a host.
func (j *reporter) drift(h *Host) {
	if v, refused := j.todo.Refused[h.Host]; refused {
		j.problem(h.Host, v.Refused, v.Detail, v.Advice)
		return // nobody can say what `kgpu up` would do
	}
	h.Drift.Known = j.todo.Known
	h.Drift.Pending = append(h.Drift.Pending, j.todo.Steps[h.Host]...)
	steps := h.Drift.Pending
	if len(steps) == 0 {
		return
	}
	var list []string
	for _, s := range steps[:min(shownSteps, len(steps))] {
		list = append(list, s.Step+" ("+s.Reason+")")
	}
	if more := len(steps) - shownSteps; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	what := "steps are"
	if len(steps) == 1 {
		what = "step is"
	}
	j.problem(h.Host, "", fmt.Sprintf("%d %s to do: %s", len(steps), what, strings.Join(list, ", ")),
		fmt.Sprintf("`kgpu plan %s` lists them with their reasons, `kgpu up %[1]s` does them", j.inv.Path))
}
