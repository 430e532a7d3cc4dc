// Package render writes a plan as folders of scripts, kubeadm configurations and manifests, which people copy to the
// hosts and run by hand. Except for Write it is pure.
package render

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// hostScript is the steps that a host can do without waiting for other hosts: one script that a person runs.
type hostScript struct {
	host  string
	name  string // of the script, without .sh
	round int
	steps []*step
}

// step is a step of the plan with its folder below the host's.
type step struct {
	*graph.Step
	folder       string
	placeholders []string // names of the credentials that its values have placeholders for
}

const (
	master = "init-master"
	worker = "init-worker"
)

// hostScripts divides a plan into turns, each after those it needs. In each round the control planes come first, and
// otherwise the inventory's order is kept.
func hostScripts(inv *inventory.Inventory, g *graph.Graph) []*hostScript {
	planes := inv.ControlPlanes()
	workers := slices.DeleteFunc(slices.Clone(inv.Hosts), inventory.Host.IsControlPlane)
	order := map[string]int{}
	for i, h := range slices.Concat(planes, workers) {
		order[h.ID()] = i
	}
	round := map[graph.Ref]int{}
	var all []*hostScript
	for _, s := range byHand(g) {
		r := 1
		for _, need := range s.Needs {
			at := round[need] // zero if it is not in the plan
			if at > 0 && order[need.Host] > order[s.Host] {
				at++
			}
			r = max(r, at)
		}
		round[s.Ref] = r
		i := slices.IndexFunc(all, func(t *hostScript) bool { return t.host == s.Host && t.round == r })
		if i < 0 {
			i, all = len(all), append(all, &hostScript{host: s.Host, round: r})
		}
		all[i].steps = append(all[i].steps, &step{Step: s})
	}
	slices.SortStableFunc(all, func(a, b *hostScript) int {
		if a.round != b.round {
			return a.round - b.round
		}
		return order[a.host] - order[b.host]
	})
	count, number := map[string]int{}, map[string]int{}
	for _, t := range all {
		t.name = worker
		if order[t.host] < len(planes) {
			t.name = master
		}
		if count[t.host]++; count[t.host] > 1 {
			t.name = fmt.Sprintf("%s-%d", t.name, count[t.host])
		}
		for _, s := range t.steps {
			number[t.host]++
			s.folder = fmt.Sprintf("%02d-%s", number[t.host], strings.ReplaceAll(s.ID, "/", "-"))
		}
	}
	return all
}

// byHand returns the steps that people run, which for some steps are others than kgpu's.
func byHand(g *graph.Graph) (out []*graph.Step) {
	for _, s := range g.Steps {
		if s.ByHand == nil {
			out = append(out, s)
		}
		out = append(out, s.ByHand...)
	}
	return out
}
