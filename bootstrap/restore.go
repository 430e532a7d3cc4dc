package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"kgpu.dev/kgpu/bootstrap/archive"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// RestoreOptions are what Restore needs beyond what all stories need.
type RestoreOptions struct {
	File     string                                     // the archive
	Identity string                                     // file with age identities, for an archive that is encrypted
	Show     func(*graph.Graph) error                   // is called with each plan before it is carried out
	Sure     func(*graph.Graph, *archive.Archive) error // is asked before the control planes are touched; it shows their plan
}

// Restore gives a cluster the data of an archive, on the hosts of the inventory: those that it had, or others. The archive is checked
// whole before any host is asked. Then the control planes get the data, and all else is the story of Up. One that was killed is carried
// on by another one with the same archive.
func Restore(ctx context.Context, o Options, ro RestoreOptions) error {
	a, err := checkedArchive(ro)
	if err != nil {
		return err
	}
	wanted := wantedOf(a)
	wanted.Token = fmt.Sprintf("kgpu-%.16s-%016x", a.Sum, rand.Uint64())
	if o.Inventory, err = wanted.For(o.Inventory); err != nil {
		return err
	}
	inv, reached, err := restorePlanes(ctx, o, ro, a, wanted)
	if err != nil {
		return err
	}
	o.Inventory = inv
	if len(reached) < len(o.Inventory.Hosts) {
		o.Limit = reached
	}
	return Up(ctx, o, ro.Show)
}

func checkedArchive(ro RestoreOptions) (*archive.Archive, error) {
	identities, err := archive.Identities(ro.Identity)
	if err != nil {
		return nil, reason.Usagef("--identity: %v", err)
	}
	a, err := archive.Check(ro.File, identities)
	if _, missing := errors.AsType[*os.PathError](err); missing {
		return nil, reason.Usagef("the archive cannot be read: %v", err)
	}
	return a, err
}

func wantedOf(a *archive.Archive) plan.Archive {
	w := plan.Archive{
		Sum: a.Sum, CA: a.CA, Cluster: a.Cluster, Kubernetes: a.Kubernetes, Etcd: a.Etcd, Endpoint: a.Endpoint, Encrypted: a.Encrypted, Made: a.Made,
		Settings: plan.Settings(a.Settings), Sums: map[string]string{}, Nodes: map[string]string{},
	}
	for _, name := range sentFiles {
		f, _ := a.Find(name)
		w.Sums[name], w.Size = f.SHA256, w.Size+f.Size
	}
	for _, h := range a.Hosts {
		if h.Node != "" {
			w.Nodes[h.Node] = h.Address
		}
	}
	return w
}

// sentFiles are the files of an archive that a control plane is sent.
var sentFiles = []string{archive.Snapshot, archive.PlaneFiles}

// restorePlanes gives the control planes the data, and has the nodes look at it anew. It returns the inventory of the cluster that comes
// back, and the hosts that were reached.
func restorePlanes(ctx context.Context, o Options, ro RestoreOptions, a *archive.Archive, wanted plan.Archive) (inv *inventory.Inventory, reached []string, err error) {
	o.Ignore = append(o.Ignore, string(reason.HostEtcdStale), string(reason.HostHalfMade)) // the plan judges whose they are
	open, err := session.OpenToChange(ctx, o.Options, o.Inventory.Hosts, func(h inventory.Host, err error) bool {
		o.Tell(event.Event{Host: h.ID(), Kind: event.Warning, Text: "the restore goes on without it: " + err.Error()})
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	s := &story{Session: open, want: o}
	defer s.Close()
	s.TolerateWorkers = true
	err = session.Change{
		Leftover: (*session.Session).Attach,
		Check: func(ctx context.Context) error {
			comesBack, err := wanted.On(s.Inventory, s.Facts)
			if err != nil {
				return err
			}
			s.Inventory = comesBack
			return s.preflightPlanes(ctx)
		},
		Plan: func() (*graph.Graph, error) { return plan.Restore(s.Inventory, s.Facts, wanted) },
		Ask:  func(_ context.Context, g *graph.Graph) error { return ro.Sure(g, a) },
		Do: func(ctx context.Context, g *graph.Graph) error {
			if _, err := s.Execute(ctx, g.Only(plan.BeginRestoreStep)); err != nil {
				return err
			}
			if err := s.send(ctx, a, g); err != nil {
				return err
			}
			_, err := s.Execute(ctx, g.Without(plan.BeginRestoreStep))
			return err
		},
	}.Run(ctx, s.Session)
	for _, h := range s.RemainingHosts() {
		reached = append(reached, h.ID())
	}
	return s.Inventory, reached, err
}

// preflightPlanes judges the control planes where one of them is made anew. What workers are is judged when it is there again.
func (s *story) preflightPlanes(ctx context.Context) error {
	all := s.Facts
	planes := map[string]*facts.Host{}
	for id, f := range all {
		if s.IsPlane(id) {
			planes[id] = f
		}
	}
	if !s.AnyPlane(func(f *facts.Host) bool { return f.ControlPlane == nil }) {
		return nil
	}
	s.Facts = planes
	defer func() { s.Facts = all }()
	return s.preflight(ctx)
}

// send sends the control planes that need it what they are restored from.
func (s *story) send(ctx context.Context, a *archive.Archive, g *graph.Graph) error {
	for _, step := range g.Steps {
		if step.ID != plan.RestoreStep && step.ID != "cluster/init" {
			continue
		}
		for _, name := range sentFiles {
			if err := s.sendFile(ctx, a, step.Host, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendFile sends a file of the archive. On this machine it is, unpacked, in a temporary file without a name.
func (s *story) sendFile(ctx context.Context, a *archive.Archive, id, name string) error {
	f, err := os.CreateTemp("", "kgpu-restore-*") // mode 0600
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := a.Extract(name, f); err != nil {
		return err
	}
	file, _ := a.Find(name)
	s.Tell(event.Event{Host: id, Kind: event.Wait, Text: "for " + name + " to arrive"})
	return s.Conn(id).Upload(ctx, f, file.Size, restoreFolder+name, 0o600, session.Bounds{Time: transferPatience})
}
