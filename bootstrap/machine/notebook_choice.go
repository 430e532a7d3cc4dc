package machine

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// NotebookChoice is the framework of the notebook and the nodes that it can run on.
type NotebookChoice struct {
	Framework catalog.Framework // empty if the inventory names an image whose framework is unknown
	Nodes     []string          // nodes whose GPUs it computes on, in the inventory's order
	Pinned    bool              // some nodes have GPUs that it does not compute on
	Why       string            // for people; empty if the inventory's or the first framework computes on all GPUs
}

// ChooseNotebook decides the framework of the notebook: the inventory's, or else the first one that computes on the
// most GPUs. It is empty if no host has cards. The error is a *Refused if no framework, or not the inventory's,
// computes on any GPU.
func ChooseNotebook(inv *inventory.Inventory, seen map[string]*facts.Host) (NotebookChoice, error) {
	hosts := cardHosts(inv, seen)
	if inv.Notebook.Image != "" || len(hosts) == 0 {
		return NotebookChoice{Framework: inv.Notebook.Framework, Nodes: nodesOf(hosts)}, nil
	}
	frameworks := catalog.NotebookFrameworks
	if inv.Notebook.Framework != "" {
		frameworks = []catalog.Framework{inv.Notebook.Framework}
	}
	var best notebookFit
	var passed []string // why frameworks do not compute on all GPUs
	for _, f := range frameworks {
		fit := fits(f, inv.Notebook.Version, hosts)
		if fit.cards > best.cards {
			best = fit
		}
		passed = append(passed, fit.against...)
	}
	if best.cards == 0 {
		return NotebookChoice{}, &Refused{Kind: NoNotebook, Detail: strings.Join(passed, "; ")}
	}
	c := NotebookChoice{Framework: best.framework, Nodes: nodesOf(best.hosts), Pinned: len(best.hosts) < len(hosts)}
	if best.framework != frameworks[0] || c.Pinned {
		c.Why = string(best.framework) + " on " + strings.Join(c.Nodes, ", ") + ": " + strings.Join(passed, "; ")
	}
	return c, nil
}

// cardHost is a host whose cards a driver is available for.
type cardHost struct {
	node  string
	facts *facts.Host
	cards []catalog.GPU // the models, each once
	count int
}

// cardHosts returns the hosts of the inventory whose cards a driver is available for.
func cardHosts(inv *inventory.Inventory, seen map[string]*facts.Host) []cardHost {
	var out []cardHost
	for _, h := range inv.Hosts {
		f := seen[h.ID()]
		if f == nil || len(Cards(inv, f)) == 0 {
			continue
		}
		kinds, err := knownCards(inv, f)
		if _, none := ChooseDriver(inv, f); err == nil && none == nil {
			out = append(out, cardHost{Machine{Host: h, Facts: f}.NodeName(), f, kinds, len(Cards(inv, f))})
		}
	}
	return out
}

func nodesOf(hosts []cardHost) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.node)
	}
	return out
}

// notebookFit says which hosts a framework's image computes on.
type notebookFit struct {
	framework catalog.Framework // hosts all of whose GPUs it computes on
	hosts     []cardHost        // number of GPUs of these hosts
	cards     int               // reasons against the other hosts
	against   []string          // why it does not on the others
}

func fits(f catalog.Framework, version string, hosts []cardHost) notebookFit {
	fit := notebookFit{framework: f}
	for _, h := range hosts {
		foreign := slices.DeleteFunc(slices.Clone(h.cards), func(g catalog.GPU) bool { return catalog.NotebookComputes(f, version, g.Architecture) })
		switch {
		case !catalog.NotebookHosts(f, h.facts.Arch):
			fit.against = append(fit.against, fmt.Sprintf("%s has no image for the processor of %s (%s)", f, h.node, h.facts.Arch))
		case len(foreign) > 0:
			fit.against = append(fit.against, fmt.Sprintf("%s does not compute on %s of %s", f, cardNames(foreign), h.node))
		default:
			fit.hosts, fit.cards = append(fit.hosts, h), fit.cards+h.count
		}
	}
	return fit
}
