// Package bootstrap tells the stories of kgpu's commands, one file each, over the same five words: the inventory
// (desired), facts (observed), a plan (pure), a run (a graph of steps on hosts) and a proof.
package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// Options are what stories that touch hosts need.
type Options struct {
	session.Options
	Ignore     []string // reason IDs that preflight does not stop at
	Only, Skip []string // step IDs
	Kubeconfig string   // where the admin kubeconfig goes; empty: beside the inventory
	Adopt      bool     // take over what was made by hand, where that is safe

	// Agree is asked before nodes are drained: an error ends the story, and what was done by then stays as it is. It need not bother
	// anybody where no node has pods: agreed is false then, and pods with cards that come to a node before its turn keep it from being
	// drained.
	Agree          func([]session.Disruption) (agreed bool, err error)
	Opened         func(access.Notebook) // hears how the notebook is opened, with its token: not for logs; nil: nobody wants to know
	MaxUnavailable int                   // nodes that may be drained at the same time; zero: one
	DrainTimeout   time.Duration         // how long pods have to leave a node; zero: as long as the step
	SkipBusy       bool                  // nodes whose pods hold GPUs are drained for nothing, and left for later
	Now            func() time.Time      // the clock; nil: this machine's
}

// story is a session and what is wanted of it.
type story struct {
	*session.Session
	want       Options
	asked      []string // nodes whose drains the operator was asked about
	drains     []string // those of them that may be drained whatever runs there
	kubernetes string   // which version a new cluster gets, and why; empty: it is fixed
}

// settled is the inventory with the version of Kubernetes that the cluster runs, as far as it was looked at.
func (s *story) settled() *inventory.Inventory { return machine.SetOf(s.Inventory, s.Facts).Inventory }

// next is the inventory with the version of Kubernetes that the next round of an upgrade brings, if there is one.
func (s *story) next() *inventory.Inventory {
	set := machine.SetOf(s.Inventory, s.Facts)
	set.Retarget()
	return set.Inventory
}

// cluster is the cluster of the story, to be got into.
func (s *story) cluster() *access.Cluster { return access.To(s.Session, s.want.Kubeconfig) }

// agreed asks whether the plan may disrupt what runs, and keeps the answer: the nodes that may be drained whatever runs
// there when it is their turn.
func (s *story) agreed(ctx context.Context, g *graph.Graph) error {
	s.asked, s.drains = nil, nil
	return s.agreedToMore(ctx, g)
}

// agreedToMore asks about the nodes that nobody was asked about yet: a later round may drain more than the first was known to.
func (s *story) agreedToMore(ctx context.Context, g *graph.Graph) error {
	known := func(node string) bool { return slices.Contains(s.asked, node) }
	if nodes, _ := g.DrainedNodes(); !slices.ContainsFunc(nodes, func(node string) bool { return !known(node) }) {
		return nil
	}
	found, err := s.Disruptions(ctx, g)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(d session.Disruption) bool { return known(d.Node) })
	yes, err := s.want.Agree(found)
	if err != nil {
		return err
	}
	for _, d := range found {
		s.asked = append(s.asked, d.Node)
		if yes {
			s.drains = append(s.drains, d.Node)
		}
	}
	return nil
}

// rewrite puts an edited inventory in the place of the file that it was made of, which nobody else may have changed meanwhile.
func rewrite(path string, was, edited []byte) error {
	now, err := os.ReadFile(path)
	switch {
	case err != nil:
		return err
	case bytes.Equal(now, edited):
		return nil
	case !bytes.Equal(now, was): // while hosts were looked at, or somebody was asked
		return reason.Usagef("%s was changed since this began: nothing was written, and no host was changed. Run the same command again", path)
	}
	if err := atomicfile.Update(path, edited, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// asReason is err as one with a reason, as all are that come from a host.
func asReason(h inventory.Host, err error) *reason.Error {
	if err == nil {
		return nil
	}
	if all := reason.All(err); len(all) > 0 {
		return all[0]
	}
	return &reason.Error{ID: reason.FactsFailed, Host: h.ID(), Err: err}
}

// planeStays refuses to treat a control plane as a worker.
func (o Options) planeStays(id string) error {
	if len(o.Inventory.ControlPlanes()) > 1 {
		return reason.Usagef("%s is a control plane: `kgpu remove-control-plane %s` takes it out", id, id)
	}
	return noneStays([]string{id})
}

// noneStays refuses to take all control planes out of the cluster.
func noneStays(planes []string) error {
	are := "is the only control plane"
	if len(planes) > 1 {
		are = "are all of its control planes"
	}
	return reason.Usagef("%s %s: without one there is no cluster. `kgpu reset` without a host takes the whole cluster apart", strings.Join(planes, ", "), are)
}
