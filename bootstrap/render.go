package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/render"
	"kgpu.dev/kgpu/inventory"
)

// Render writes what Up would do into the folder dir, as scripts for people to run by hand, and returns in words what it
// wrote. It looks at the hosts and changes nothing; with assume, a release of facts.Fresh, it takes all of them for fresh
// machines of that release, without cards, and contacts none. Where nothing is to be done it writes nothing.
func Render(ctx context.Context, o Options, dir, assume string) (string, error) {
	graph, inv, err := o.rendered(ctx, assume)
	if err != nil {
		return "", err
	}
	o.Inventory = inv
	return o.render(dir, graph)
}

func (o Options) render(dir string, graph *graph.Graph) (string, error) {
	if graph.Kubernetes != "" { // the folder's README.md says the same as the warnings
		graph.Warnings = append(graph.Warnings, graph.Kubernetes)
	}
	for _, w := range graph.Warnings {
		o.Tell(event.Event{Kind: event.Warning, Text: w})
	}
	if graph.Empty() {
		return fmt.Sprintf("nothing was written: the hosts have all of it already; --assume RELEASE renders what bare hosts need (%s)", Releases()), nil
	}
	nodes, _ := graph.DrainedNodes()
	graph.AllowGPUEviction(nodes) // by whoever runs the scripts
	files, err := render.Files(o.Inventory, graph)
	if err != nil {
		return "", err
	}
	if err := render.Write(dir, files); err != nil {
		return "", err
	}
	return fmt.Sprintf("done: %s says what to run where", filepath.Join(dir, "README.md")), nil
}

// rendered is the plan for the hosts as they are, or as they are assumed to be, and the inventory with the version it is made for.
func (o Options) rendered(ctx context.Context, assume string) (*graph.Graph, *inventory.Inventory, error) {
	if assume == "" {
		return o.planned(ctx)
	}
	hosts, err := o.Selected()
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]*facts.Host{}
	for _, h := range hosts {
		address := h.PrivateAddress.String()
		if !h.PrivateAddress.IsValid() {
			address = h.Address
		}
		fresh, err := facts.Fresh(assume, h.Name, address)
		if err != nil {
			return nil, nil, reason.Usagef("--assume %s: %s: %v", assume, h.ID(), err)
		}
		seen[h.ID()] = fresh
	}
	graph, err := plan.Up(o.Inventory, seen)
	if err != nil {
		return nil, nil, err
	}
	graph.LimitUnavailable(max(o.MaxUnavailable, 1))
	graph.Warnings = append(graph.Warnings, "no host was looked at: they are taken for fresh machines with "+assume+", without cards")
	if _, why := plan.ChooseVersion(o.Inventory, seen, nil); why != "" {
		graph.Warnings = append(graph.Warnings, why)
	}
	return graph, o.Inventory, nil
}

// Releases are the words for --assume.
func Releases() string { return strings.Join(slices.Sorted(maps.Keys(facts.Releases)), ", ") }
