package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// Removal says how hosts leave.
type Removal struct {
	Names []string                 // of the hosts, their addresses, or ranges of these
	Force bool                     // go on without hosts that cannot be reached: only what the cluster and the inventory have of them goes
	Show  func(*graph.Graph) error // is called with the plan before anything is touched
	Sure  func() error             // is asked where something is to be done and no pods have to be agreed about

	planes bool // they are control planes
}

// RemoveWorker takes workers out of the cluster, resets them and removes them from the inventory file. Only control
// planes and these workers are contacted. What one of them has done already is not done again: the command may be repeated.
func RemoveWorker(ctx context.Context, o Options, r Removal) error {
	ids, err := o.leaving(r.Names)
	if err != nil {
		return err
	}
	return o.remove(ctx, r, ids)
}

// RemoveControlPlane does so with control planes of a cluster that goes on with others. All control planes are contacted.
func RemoveControlPlane(ctx context.Context, o Options, r Removal) error {
	ids, err := o.Named(r.Names)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, h := range o.Inventory.Hosts {
		if slices.Contains(ids, h.ID()) && !h.IsControlPlane() {
			return reason.Usagef("%s is a worker: `kgpu remove-worker %s`", h.ID(), h.ID())
		}
	}
	switch stay := len(o.Inventory.ControlPlanes()) - len(ids); {
	case stay == 0:
		return noneStays(ids)
	case stay%2 == 0:
		return reason.Usagef("%d control planes would stay: a cluster has 1, 3 or 5; name one more", stay)
	}
	r.planes = true
	return o.remove(ctx, r, ids)
}

// remove takes hosts out.
func (o Options) remove(ctx context.Context, r Removal, ids []string) error {
	// A file that cannot be edited is found before anything is changed.
	if _, err := withoutHosts(o.Inventory.Path, ids); err != nil {
		return err
	}
	if err := atomicfile.Writable(o.Inventory.Path); err != nil {
		return reason.Usagef("the hosts cannot be taken out of the file: %v", err)
	}
	o.Limit = ids
	hosts, err := o.Selected()
	if err != nil {
		return err
	}
	lost := func(h inventory.Host, err error) bool {
		if !r.Force || !unreachable(err) {
			return false
		}
		o.Tell(event.Event{Host: h.ID(), Kind: event.Warning, Text: "going on without it: " + err.Error()})
		return true
	}
	s, err := session.OpenToChange(ctx, o.Options, hosts, lost)
	if err != nil {
		return r.adviseForce(err, ids)
	}
	defer s.Close()
	var after map[string][]graph.Ref
	return session.Change{
		Leftover: (*session.Session).Stop,
		Plan: func() (g *graph.Graph, err error) {
			if !r.planes {
				g, after, err = plan.Remove(s.Inventory, s.Facts, ids, r.Force)
				return g, err
			}
			if err := r.lost(s, ids); err != nil {
				return nil, err
			}
			g, after, err = plan.RemovePlanes(s.Inventory, s.Facts, ids)
			return g, err
		},
		Ask: func(ctx context.Context, g *graph.Graph) error {
			if err := r.handOver(s, o, ids, func(left *access.Cluster) error { return left.MayFetch(false, false) }); err != nil {
				return err
			}
			return r.sure(ctx, s, o, g)
		},
		Do: func(ctx context.Context, g *graph.Graph) error {
			result, err := s.Execute(ctx, g)
			s.TellUnreverted(result)
			if err := errors.Join(err, forget(s, ids, after, result)); err != nil {
				return err
			}
			return r.handOver(s, o, ids, func(left *access.Cluster) error { return left.Fetch(ctx, false) })
		},
	}.Run(ctx, s)
}

// handOver calls do with the cluster as it is without the control planes that leave: the kubeconfig here may be made of what one of
// them had. Where workers leave, nothing of it changes.
func (r Removal) handOver(s *session.Session, o Options, ids []string, do func(left *access.Cluster) error) error {
	if !r.planes {
		return nil
	}
	all := s.Inventory
	defer func() { s.Inventory = all }()
	stay := *all
	stay.Hosts = slices.DeleteFunc(slices.Clone(all.Hosts), func(h inventory.Host) bool { return slices.Contains(ids, h.ID()) })
	s.Inventory = &stay
	return do(access.To(s, o.Kubeconfig))
}

// lost refuses to give up control planes that cannot be reached, unless that is meant.
func (r Removal) lost(s *session.Session, ids []string) error {
	for _, id := range ids {
		if s.Facts[id] == nil && !r.Force {
			return &reason.Error{ID: reason.SSHUnreachable, Host: id, Doing: "planning", Detail: "this control plane cannot be reached",
				Advice: "bring it back; or, if it will not come back: the same command with --force"}
		}
	}
	return nil
}

// leaving turns names into the IDs of workers.
func (o Options) leaving(names []string) ([]string, error) {
	ids, err := o.Named(names)
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, h := range o.Inventory.ControlPlanes() {
		if slices.Contains(ids, h.ID()) {
			return nil, o.planeStays(h.ID())
		}
	}
	return ids, nil
}

// unreachable reports whether nothing could be asked of a host.
func unreachable(err error) bool {
	all := reason.All(err)
	return len(all) > 0 && !slices.ContainsFunc(all, func(e *reason.Error) bool { return !session.Unreached(e) })
}

// adviseForce adds to the errors of workers that could not be reached how to do without them. Where control planes leave, it would not
// help: nothing goes on without those that stay, and of the others lost says so.
func (r Removal) adviseForce(err error, workers []string) error {
	if r.Force || r.planes {
		return err
	}
	for _, e := range reason.All(err) {
		if slices.Contains(workers, e.Host) && session.Unreached(e) {
			e.Advice = e.AdviceLine() + "; or, if it will not come back: the same command with --force"
		}
	}
	return err
}

// sure shows the plan, and asks: which pods may be moved, or else whether all of this is meant.
func (r Removal) sure(ctx context.Context, s *session.Session, o Options, g *graph.Graph) error {
	if err := r.Show(g); err != nil || g.Empty() {
		return err
	}
	found, err := s.Disruptions(ctx, g)
	switch {
	case err != nil:
		return err
	case session.Disrupting(found):
		_, err := o.Agree(found)
		return err
	}
	return r.Sure()
}

// forget removes the workers that have left from the inventory file, and says what became of those that were not reached.
func forget(s *session.Session, ids []string, left map[string][]graph.Ref, result *run.Result) error {
	var gone []string
	for _, id := range ids {
		if !slices.ContainsFunc(left[id], func(last graph.Ref) bool { return !done(result, last) }) {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 || s.IsPlane(gone[0]) && len(gone) < len(ids) { // control planes leave the file together: it takes no even number
		return nil
	}
	edited, err := withoutHosts(s.Inventory.Path, gone)
	if err != nil {
		return err
	}
	if edited != nil {
		if err := atomicfile.Update(s.Inventory.Path, edited, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", s.Inventory.Path, err)
		}
	}
	for _, id := range gone {
		if s.Conn(id) == nil {
			s.Tell(event.Event{Host: id, Kind: event.Warning,
				Text: "the host itself was not cleaned: kgpu's packages and files, and the keys of its kubelet, are still on it. When it can be reached, write it into " +
					s.Inventory.Path + " again and run `" + removes(s, id) + " " + id + "`; a host that is installed anew needs nothing",
			})
		}
	}
	return nil
}

// removes is the command that takes a host out.
func removes(s *session.Session, id string) string {
	if s.IsPlane(id) {
		return "kgpu remove-control-plane"
	}
	return "kgpu remove-worker"
}

// done reports whether a step ended well.
func done(result *run.Result, step graph.Ref) bool {
	return slices.ContainsFunc(result.Steps, func(s run.StepResult) bool { return s.Ref == step && s.Outcome == run.Done })
}

// withoutHosts is the text of an inventory file without these hosts; nil: it has none of them any more.
func withoutHosts(path string, ids []string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	edited, err := inventory.RemoveHosts(data, ids)
	if err != nil {
		return nil, err
	}
	after, err := inventory.DecodeEdited(path, data, edited)
	if err != nil {
		return nil, err
	}
	for _, h := range after.Hosts {
		if slices.Contains(ids, h.ID()) {
			return nil, reason.Usagef("%s names %s by a variable of the environment: `kgpu reset %s`, then remove it from the file by hand", path, h.ID(), h.ID())
		}
	}
	if bytes.Equal(edited, data) {
		return nil, nil
	}
	before, err := inventory.Decode(path, data, inventory.Options{})
	if err != nil {
		return nil, err
	}
	if len(before.Hosts)-len(after.Hosts) > len(ids) { // the name of one is the address of another
		return nil, reason.Usagef("%s names several hosts by the same word: remove them from the file by hand", path)
	}
	return edited, nil
}

// StillNamed are those of the names, or of what ranges stand for, that the inventory file at path has: what is left to
// remove when some have left. It is all of them when the file cannot be read.
func StillNamed(path string, names []string) []string {
	inv, err := inventory.Load(path, inventory.Options{})
	all, problem := session.Expand(names)
	if err != nil || problem != nil {
		return names
	}
	var out []string
	for _, name := range all {
		if _, err := (session.Options{Inventory: inv}).Named([]string{name}); err == nil {
			out = append(out, name)
		}
	}
	if len(out) == len(all) {
		return names
	}
	return out
}
