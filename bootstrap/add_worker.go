package bootstrap

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/proposal"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// AddWorker adds hosts to the inventory file, by the names of their nodes, and makes them nodes. Only control planes and the
// new hosts are contacted. A host that the file has already is no error: the command may be repeated.
func AddWorker(ctx context.Context, o Options, targets []inventory.Target, way inventory.Way, show func(*graph.Graph) error) error {
	return addHosts(ctx, o, growth{}, targets, way, show)
}

// AddControlPlane does so with hosts that become control planes. All control planes are contacted, and where there is a virtual address
// all hosts. A virtualIP is written into the inventory, too, unless it is empty.
func AddControlPlane(ctx context.Context, o Options, targets []inventory.Target, virtualIP string, way inventory.Way, show func(*graph.Graph) error) error {
	return addHosts(ctx, o, growth{inventory.ControlPlane, virtualIP}, targets, way, show)
}

// growth is what is written into an inventory beside the new hosts.
type growth struct {
	role      inventory.Role // of the hosts; empty: workers
	virtualIP string         // empty: as it is
}

// in is an inventory's text with it.
func (g growth) in(data []byte, hosts []inventory.NewHost) (edited []byte, err error) {
	if g.virtualIP != "" {
		if data, err = inventory.SetVirtualIP(data, g.virtualIP); err != nil {
			return nil, err
		}
	}
	return inventory.AddHosts(data, hosts)
}

// addHosts adds hosts to the inventory and to the cluster.
func addHosts(ctx context.Context, o Options, by growth, targets []inventory.Target, way inventory.Way, show func(*graph.Graph) error) error {
	path := o.Inventory.Path
	ssh, err := way.Draft()
	if err != nil {
		return err
	}
	if _, err := inventory.Template(path, o.Inventory.Cluster, ssh, time.Time{}); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	o.Limit = nil
	var added []inventory.NewHost
	for _, t := range targets {
		t.User = cmp.Or(t.User, ssh.User)
		at := slices.IndexFunc(o.Inventory.Hosts, func(h inventory.Host) bool { return t.IsAt(h) || t.Address == h.Name })
		if at < 0 {
			added = append(added, inventory.NewHost{Address: t.Address, Role: by.role, User: t.User, Port: t.Port, Key: ssh.Key, SudoPassword: ssh.SudoPassword})
			o.Limit = append(o.Limit, t.Address)
			continue
		}
		h := o.Inventory.Hosts[at]
		if by.role == inventory.ControlPlane && !h.IsControlPlane() {
			return reason.Usagef("%s is in %s already, as a worker: `kgpu remove-worker %s` takes it out first", t.Address, path, h.ID())
		}
		if err := o.sameWay(t, h); err != nil {
			return err
		}
		o.Limit = append(o.Limit, h.ID())
	}
	if by.role == inventory.ControlPlane && len(added) > 0 {
		if err := mayGrow(len(o.Inventory.ControlPlanes()), len(added)); err != nil {
			return err
		}
	}
	grow := func() (hosts []inventory.Host, err error) {
		edited, err := by.in(data, added)
		if err != nil {
			return nil, err
		}
		if o.Inventory, err = inventory.DecodeEdited(path, data, edited); err != nil {
			return nil, err
		}
		o.Inventory.Kubernetes.Pin = inventory.NotPinned // an upgrade is for `kgpu up`: a new node gets what the cluster runs
		if by.role == inventory.ControlPlane && o.Inventory.Kubernetes.VirtualIP.IsValid() {
			o.Limit = nil // the address may be new: all hosts are to find the API server there
		}
		return o.Selected()
	}
	hosts, err := grow()
	if err != nil {
		return err
	}
	if err := atomicfile.Writable(path); (len(added) > 0 || by.virtualIP != "") && err != nil {
		return reason.Usagef("the hosts cannot be written into the file: %v", err)
	}
	if way.AcceptNew && o.pin(ctx, hosts, added) {
		if hosts, err = grow(); err != nil {
			return err
		}
	}
	// The file is written once the hosts have been reached and judged, and before anything on them changes. A new host that
	// is lost until then is none of it: the command may be repeated.
	return converge(ctx, o, hosts, show, func(seen map[string]*facts.Host) error {
		added := slices.DeleteFunc(added, func(n inventory.NewHost) bool { return seen[n.Address] == nil })
		if len(added) == 0 && by.virtualIP == "" {
			return nil
		}
		nameNew(added, o.Inventory.Hosts, seen)
		edited, err := by.in(data, added)
		if err != nil {
			return err
		}
		return rewrite(path, data, edited)
	})
}

// mayGrow refuses a number of new control planes after which the cluster could not work with those that it has.
func mayGrow(has, added int) error {
	switch n := has + added; {
	case n == 3 || n == 5:
		return nil
	case n < 5:
		return reason.Usagef("there would be %d control planes: a cluster has 1, 3 or 5; name one more", n)
	case has == 5:
		return reason.Usagef("there would be %d control planes: a cluster has 1, 3 or 5", n)
	default:
		return reason.Usagef("there would be %d control planes: a cluster has 1, 3 or 5; name %d fewer", n, n-5)
	}
}

// pin gives new hosts the keys that they show, where nobody here knows these, and reports whether there are any.
func (o Options) pin(ctx context.Context, hosts []inventory.Host, added []inventory.NewHost) bool {
	s := session.New(o.Options)
	defer s.Close()
	var mu sync.Mutex
	pinned := false
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(h inventory.Host) bool {
		return !slices.ContainsFunc(added, func(n inventory.NewHost) bool { return n.Address == h.Address })
	})
	_ = session.Each(hosts, func(h inventory.Host) error {
		_, err := s.Connect(ctx, h)
		if unknown := session.UnknownKey(asReason(h, err)); unknown != nil && !unknown.Bastion {
			mu.Lock()
			defer mu.Unlock()
			at := slices.IndexFunc(added, func(n inventory.NewHost) bool { return n.Address == h.Address })
			added[at].HostKey, pinned = unknown.Line(), true
		}
		return nil // who cannot be reached is told of later
	})
	return pinned
}

// nameNew gives new hosts the names of the nodes that they are in the plan, so that the inventory knows them by these from now
// on, whatever they call themselves later. A name that the inventory would not take, or has for another host, is left out.
func nameNew(added []inventory.NewHost, all []inventory.Host, seen map[string]*facts.Host) {
	for i, n := range added {
		at := slices.IndexFunc(all, func(h inventory.Host) bool { return h.Address == n.Address })
		name := machine.Machine{Host: all[at], Facts: seen[all[at].ID()]}.NodeName()
		another := func(h inventory.Host) bool { return h.Address != n.Address && (h.Name == name || h.Address == name) }
		if proposal.ValidName(name) && !slices.ContainsFunc(all, another) {
			added[i].Name = name
		}
	}
}

// sameWay refuses another user or port than the inventory has for the host.
func (o Options) sameWay(t inventory.Target, h inventory.Host) error {
	s := session.New(o.Options)
	defer s.Close()
	hops, err := s.Route(h)
	if err != nil {
		return err
	}
	is := hops[len(hops)-1]
	if t.User != "" && t.User != is.User || t.Port != 0 && t.Port != is.Port {
		return reason.Usagef("%s is in %s already, as %s@%s:%d: change its `ssh: {user: …, port: …}` there", t.Address, o.Inventory.Path, is.User, is.Host, is.Port)
	}
	return nil
}
