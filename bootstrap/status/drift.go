package status

import (
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// Todo is what `kgpu up` would do, by host ID.
type Todo struct {
	Steps   map[string][]Step
	Refused map[string]machine.Verdict // hosts that are not kgpu's to change
	Known   bool
	Err     error // why it is not known; nil also where the control plane could not be asked
}

// Planner plans what makes the cluster of an inventory out of hosts in the state that their facts, by host ID, tell.
type Planner func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error)

// Pending is what up plans for the hosts that told what they are. Nobody knows what cluster there is without the control plane.
func Pending(inv *inventory.Inventory, hosts []Seen, up Planner) *Todo {
	t := &Todo{Steps: map[string][]Step{}, Refused: map[string]machine.Verdict{}}
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
		t.Steps[s.Host] = append(t.Steps[s.Host], Step{said(s.ID), said(s.Title), said(s.Reason)})
	}
	return t
}

// factsOf are the facts of the hosts that told them, by ID, and whether the control plane's are among them.
func factsOf(hosts []Seen) (seen map[string]*facts.Host, control bool) {
	seen = map[string]*facts.Host{}
	for _, s := range hosts {
		if s.Facts != nil {
			seen[s.Host.ID()] = s.Facts
			control = control || s.Host.IsControlPlane()
		}
	}
	return seen, control
}

// skew tells of a node whose version is not the cluster's: `kgpu up` does not change it.
func (j *judge) skew(h *Host) {
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

// shownSteps is how many steps a problem names; the report has all.
const shownSteps = 3

// drift tells what is to do on a host that told what it is.
func (j *judge) drift(h *Host) {
	if v, refused := j.todo.Refused[h.Host]; refused {
		j.problem(h.Host, v.Refused, v.Detail, "")
		return // what would be done to it, nobody would do
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
