package machine

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// NotebookChoice is what the notebook computes with, and where.
type NotebookChoice struct {
	Framework catalog.Framework // empty: the inventory names an image, and nobody knows
	Nodes     []string          // whose cards it computes on, in the inventory's order
	Pinned    bool              // other nodes have cards that it does not compute on
	Why       string            // for people; empty: the first framework, or the inventory's, computes on all cards
}

// ChooseNotebook decides which framework the notebook has: the inventory's, or of those that kgpu has images for the one that
// computes on the most cards of the hosts; the first of them where several do. It is empty where no host has cards. The error is
// a *Refused: there is none, or the inventory's computes on none of the cards.
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
	var passed []string // what speaks against those that come first
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

// cardHost is a host with cards that a driver can be had for.
type cardHost struct {
	node  string
	facts *facts.Host
	cards []catalog.GPU // each kind once
	count int
}

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

// notebookFit is what a framework's image computes on.
type notebookFit struct {
	framework catalog.Framework
	hosts     []cardHost // with all their cards: which one a pod gets is up to the device plugin
	cards     int        // of theirs
	against   []string   // why it does not on the others
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
