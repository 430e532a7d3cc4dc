package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// BeginRestoreStep is the step after which a control plane can be sent what the others need.
const BeginRestoreStep = "restore/begin"

// RestoreStep gives a control plane that has its files the data of a backup.
const RestoreStep = "restore/data"

// RestoresSince is the first minor of Kubernetes whose clusters can be backed up and restored: etcdutl of its etcd lets revisions go on.
const RestoresSince = 30

// Restore plans that the control planes get the data of an archive, and that all nodes which are its cluster's look at it anew. A control
// plane of that cluster keeps what it has but the data; any other host is prepared, and becomes the control plane. What is left then is
// the plan of Up. The inventory is that of Archive.On.
func Restore(inv *inventory.Inventory, seen map[string]*facts.Host, a Archive) (*graph.Graph, error) {
	b, err := newIdentified(inv, seen)
	if err != nil {
		return nil, err
	}
	b.Restores = a.Endpoint
	errs := []error{b.allPlanesThere()}
	for _, h := range b.planes {
		errs = append(errs, b.mayBecome(h, a))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	members := b.restoredPlanes(a)
	token, left := underWay(a, members)
	carriedOn := token != ""
	if !carriedOn {
		token, left = a.Token, members
	}
	a.Token = token
	if version := b.Inventory.Kubernetes.Version; version.String() != a.Kubernetes {
		b.warn("the cluster comes back with Kubernetes %s: the archive is of one with %s", version, a.Kubernetes)
	}
	var begun, restored []graph.Ref
	for _, h := range left {
		begun = append(begun, b.beginRestore(h, a))
	}
	for _, h := range members {
		switch {
		case !slices.Contains(left, h):
			b.skip(h, RestoreStep, "it has the data already")
		case b.keepsItsFiles(h, a):
			restored = append(restored, b.restoreData(h, a, members, carriedOn && h.Facts.Restoring.Done))
		default:
			ref, err := b.restoreInit(h, a)
			if err != nil {
				return nil, err
			}
			restored = append(restored, ref)
		}
	}
	b.endRestore(begun, b.workersReturn(a, restored))
	b.moved(a)
	return &b.graph, b.graph.Validate()
}

// underWay is the token of the etcd that these members began to make of the archive, and those of them that have not come to their end.
// It is empty where there is nothing to carry on: then all get the data anew, as an etcd of its own. A member that got the data
// anew by itself would be one that lost what it had agreed to with the others.
func underWay(a Archive, members []*host) (token string, left []*host) {
	peers, begun := peersOf(members), false
	for _, h := range members {
		r := h.Facts.Restoring
		if r == nil {
			continue
		}
		left = append(left, h)
		switch {
		case r.Archive != a.Sum, r.Done && (r.Peers != peers || token != "" && r.Token != token):
			return "", nil
		case r.Done:
			token = r.Token
		default:
			begun = true
		}
	}
	if begun && len(left) < len(members) { // nobody comes to the end before all have the data
		return "", nil
	}
	return token, left
}

// peersOf are the members of an etcd, as it takes them.
func peersOf(members []*host) string {
	var peers []string
	for _, h := range members {
		peers = append(peers, fmt.Sprintf("%s=https://%s:2380", h.node, h.addr))
	}
	return strings.Join(peers, ",")
}

// allPlanesThere is the error of a control plane that cannot be reached: it would come back with an etcd of its own.
func (b *builder) allPlanesThere() error {
	missing := b.missingPlanes()
	if len(missing) == 0 {
		return nil
	}
	return &reason.Error{ID: reason.RestoreFailed, Host: missing[0], Doing: "planning",
		Detail: "this control plane cannot be reached, and would come back with the data that it has",
		Advice: "bring it back; or, when it is lost, write another machine into its place in the inventory"}
}

// restoredPlanes are the control planes that get the data, all of them the same: those that have their files, or the first. Others join the
// cluster when it is there: a plane that was made anew beside those would be a cluster of its own.
func (b *builder) restoredPlanes(a Archive) []*host {
	keep := slices.DeleteFunc(slices.Clone(b.planes), func(h *host) bool { return !b.keepsItsFiles(h, a) })
	if len(keep) == 0 {
		return []*host{b.first}
	}
	return keep
}

// keepsItsFiles reports whether a host is a control plane of the archive's cluster that has its certificates and manifests.
func (b *builder) keepsItsFiles(h *host, a Archive) bool {
	c, r := h.Facts.ControlPlane, h.Recorded()
	return c != nil && c.CAHash == a.CA && (r.Done || !r.Init && !r.Join) && slices.Contains(h.Facts.KubeadmFiles, "/etc/kubernetes/manifests/kube-apiserver.yaml")
}

// mayBecome is the error of a host that belongs to somebody else.
func (b *builder) mayBecome(h *host, a Archive) error {
	for _, ca := range []string{caOf(h.Facts.ControlPlane), kubeletCA(h.Facts.Kubelet)} {
		if ca != "" && ca != a.CA {
			return refuse(reason.BackupForeign, h.id, "the host is in another cluster than that of the archive, whose CA is %.12s: its own is %.12s", a.CA, ca)
		}
	}
	v := b.Verdict(h.Machine)
	ours := (h.Recorded().Init || h.Recorded().Plane) && (v.Refused == reason.HostEtcdStale || v.Refused == reason.HostHalfMade)
	if v.Refused == "" || ours || b.keepsItsFiles(h, a) {
		return nil
	}
	return refuse(v.Refused, h.id, "%s", v.Detail)
}

func caOf(c *facts.ControlPlane) string {
	if c == nil {
		return ""
	}
	return c.CAHash
}

func kubeletCA(k *facts.Member) string {
	if k == nil {
		return ""
	}
	return k.CAHash
}

func (b *builder) beginRestore(h *host, a Archive) graph.Ref {
	return b.side(h, graph.Step{
		Ref: graph.Ref{ID: BeginRestoreStep}, Reason: "the cluster gets the data of " + a.Made.UTC().Format("2006-01-02 15:04 UTC"),
		Input: graph.Input{Values: map[string]string{"archive": a.Sum, "size": fmt.Sprint(a.Size)}},
	})
}

// restoreInput is what both ways to get the data have in common.
func (b *builder) restoreInput(h *host, a Archive, members []*host) map[string]string {
	var sums []string
	for _, name := range sortedKeys(a.Sums) {
		sums = append(sums, a.Sums[name]+" "+name)
	}
	return map[string]string{
		"criSocket": b.criSocket(), "sums": lines(sums...), "node": h.node, "address": h.addr.String(), "peers": peersOf(members),
		"token": a.Token,
	}
}

// restoreData gives a control plane the data; one that has it only starts with it.
func (b *builder) restoreData(h *host, a Archive, members []*host, has bool) graph.Ref {
	why := "what it has now is kept in /var/lib/etcd.before-TIME"
	if has {
		why = "it has the data already, and starts"
	}
	input := b.restoreInput(h, a, members)
	if machine.RunningVersion(h.Facts).String() != a.Kubernetes {
		input["upgrade"] = "yes"
	}
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: RestoreStep}, Reason: why,
		Needs: []graph.Ref{{Host: h.id, ID: BeginRestoreStep}}, Input: graph.Input{Values: input},
	})
}

// restoreInit prepares a host as for a new cluster, which gets the identity and the data of the archive instead of new ones.
func (b *builder) restoreInit(h *host, a Archive) (graph.Ref, error) {
	b.clean(h)
	b.prepareOS(h)
	b.repositories(h)
	b.runtime(h)
	b.packages(h)
	config, err := b.initConfig()
	if err != nil {
		return graph.Ref{}, err
	}
	input := b.planeInput(config)
	maps.Copy(input.Values, b.restoreInput(h, a, []*host{h}))
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: "cluster/init"}, Title: "start the control plane with the data of the backup (kubeadm init)", Reason: "it has no control plane of the archive's cluster",
		Needs: []graph.Ref{{Host: h.id, ID: BeginRestoreStep}}, Input: input,
	}), nil
}

// workersReturn plans that the nodes of the archive's cluster find its API server, and look at their pods anew.
func (b *builder) workersReturn(a Archive, restored []graph.Ref) (back []graph.Ref) {
	for _, h := range b.hosts {
		if h.IsControlPlane() || kubeletCA(h.Facts.Kubelet) != a.CA {
			continue
		}
		b.hostNames(h)
		back = append(back, b.add(h, graph.Step{
			Ref: graph.Ref{ID: "restore/kubelet"}, Reason: "its certificate is one of the archive's cluster", Needs: restored,
		}))
	}
	return append(back, restored...)
}

// endRestore plans the end on every control plane that was sent something. The first looks at the nodes, for all of them, and is the last.
func (b *builder) endRestore(begun, after []graph.Ref) {
	agents := []string{"kube-system/daemonset/kube-proxy"}
	if w, ok := machine.NetworkWorkload[b.Inventory.Network]; ok {
		agents = append(agents, w)
	}
	for i := len(begun) - 1; i >= 0; i-- {
		end := graph.Step{Ref: graph.Ref{ID: "restore/end"}, Reason: "the archive is on this machine", Needs: append([]graph.Ref{begun[i]}, after...)}
		if i == 0 {
			end.Input.Values = map[string]string{"agents": lines(agents...)}
		} else {
			end.Title = "remove what was sent for the restore"
		}
		after = append(slices.Clip(after), b.side(b.hostOf(begun[i].Host), end))
	}
}

// moved warns of what is not as it was when the archive was made.
func (b *builder) moved(a Archive) {
	now := map[string]bool{}
	for _, h := range b.Inventory.Hosts {
		now[h.Name] = true
	}
	for _, h := range b.hosts {
		now[h.node] = true
		if was := a.Nodes[h.node]; h.IsControlPlane() && was != "" && was != h.addr.String() {
			b.warn("%s: the control plane was at %s and is at %s: its certificates are made for that, and %s leads there", h.id, was, h.addr, a.Endpoint)
		}
	}
	for _, node := range sortedKeys(a.Nodes) {
		if !now[node] {
			b.warn("node %[1]s of the archive is no host of the inventory: when all is well, `kubectl delete node %[1]s`", node)
		}
	}
}

// refuseUnfinishedRestore is the error of a control plane whose data may be anything.
func (b *builder) refuseUnfinishedRestore() error {
	var errs []error
	for _, h := range b.planes {
		if r := h.Facts.Restoring; r != nil {
			errs = append(errs, refuse(reason.RestoreUnfinished, h.id, "a restore of the archive with the sum %.12s was begun here and has not ended", r.Archive))
		}
	}
	return errors.Join(errs...)
}
