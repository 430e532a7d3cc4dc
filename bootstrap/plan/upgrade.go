package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// refuseVersionChange is the error of a cluster that runs another Kubernetes than it should and cannot be brought there.
func (b *builder) refuseVersionChange() error {
	v := b.Versions
	if v.Running.IsZero() || v.Running == v.Wanted {
		return nil
	}
	e := &reason.Error{ID: reason.KubernetesVersionChange, Host: b.first.id, Doing: "planning"}
	e.Detail = fmt.Sprintf("the cluster runs Kubernetes %s, and the inventory wants %s", v.Running, v.Wanted)
	switch {
	case !v.Known():
		e.Detail, e.Advice = fmt.Sprintf("the cluster runs Kubernetes %s, of which this kgpu knows nothing", v.Running), "take a newer kgpu"
	case v.Wanted.Compare(v.Running) < 0:
		e.Detail += ": a cluster does not go back to an older version"
		e.Advice = fmt.Sprintf("write `kubernetes: {version: %s}`, or leave `version` out: then what runs counts", v.Running)
	case v.Running.Minor < machine.OldestUpgraded:
		e.Detail += fmt.Sprintf(": kgpu upgrades clusters from Kubernetes 1.%d on", machine.OldestUpgraded)
	default:
		return nil
	}
	if at := b.Asked.At("kubernetes.version"); at != "" {
		e.Detail = at + ": " + e.Detail
	}
	return e
}

// chooseRound makes the inventory that of the upgrade's next round, if there is an upgrade, and refuses one that Kubernetes does not
// support.
func (b *builder) chooseRound() error {
	if b.waitsForPlane() {
		return nil
	}
	for _, v := range b.Retarget() {
		b.graph.Rounds = append(b.graph.Rounds, "Kubernetes "+v.String())
	}
	if b.Target.IsZero() {
		return nil
	}
	if err := errors.Join(b.refuseSkew(), b.refuseEtcd()); err != nil {
		return err
	}
	if b.upgrades() {
		b.graph.Kubernetes = fmt.Sprintf("Kubernetes %s becomes %s, node after node", b.Versions.Running, b.Target)
		if b.Versions.Running == b.Target {
			b.graph.Kubernetes = fmt.Sprintf("Kubernetes %s comes to the nodes that have an older one", b.Target)
		}
	}
	return nil
}

// upgradeLater leaves an upgrade for the round after this one.
func (b *builder) upgradeLater() error {
	for _, v := range b.Upgrade() {
		b.graph.Rounds = append(b.graph.Rounds, "Kubernetes "+v.String())
	}
	b.Stay()
	return nil
}

// drainsPlanesBeforeUpgrade reports whether one of several control planes that are to be upgraded is drained for something else first, as
// when its docker restarts. Each would have to be let in again before the next one is drained, and none is before all have been upgraded.
func (b *builder) drainsPlanesBeforeUpgrade() bool {
	return len(b.planes) > 1 && slices.ContainsFunc(b.planes, func(h *host) bool { return h.drainedFirst && b.PlaneLags(h.Machine) })
}

// onlyComesUp reports whether this round is there to have an API server that answers, so that an upgrade goes on: nodes that it has
// drained are let in after that, and their cards are proven then.
func (b *builder) onlyComesUp() bool { return !b.APIAnswers() && len(b.graph.Rounds) > 0 }

// waitsForPlane leaves the cluster's Kubernetes as it is while a control plane is away, and says so: etcd would miss the one that is being
// upgraded, too. Nodes follow control planes that have all come to the version before.
func (b *builder) waitsForPlane() bool {
	missing, path := b.missingPlanes(), b.Upgrade()
	lags := func(h *host) bool {
		return h.Facts.Upgrading == machine.UpgradingPlane || machine.RunningVersion(h.Facts).Compare(path[0]) < 0
	}
	if len(missing) == 0 || len(path) == 0 || !slices.ContainsFunc(b.planes, lags) {
		return false
	}
	b.Stay()
	b.warn("%s: the cluster stays at Kubernetes %s until it answers again: control planes are upgraded when all are there", missing[0], b.Versions.Running)
	return true
}

// maxSkew is how many minors a kubelet may be older than the API server, since 1.28, which is older than what kgpu upgrades.
// Source: https://kubernetes.io/releases/version-skew-policy/.
const maxSkew = 3

// refuseSkew refuses an upgrade that would leave a node too far behind, or meets one that is ahead.
func (b *builder) refuseSkew() error {
	if !slices.ContainsFunc(b.planes, func(h *host) bool { return b.PlaneLags(h.Machine) }) {
		return nil
	}
	var far []string
	for _, n := range b.Cluster.Nodes {
		if has, err := catalog.ParseVersion(n.Version); err == nil && (b.Target.Minor-has.Minor > maxSkew || has.Minor > b.Target.Minor) {
			far = append(far, fmt.Sprintf("node %s has Kubernetes %s", n.Name, has))
		}
	}
	if len(far) == 0 {
		return nil
	}
	return refuse(reason.KubernetesSkew, b.first.id, "the control plane is to run %s: %s", b.Target, strings.Join(far, ", "))
}

// etcd 3.6 came with Kubernetes 1.34. Members that were learners may come back from the dead in it, unless they ran 3.5.26 first.
// Source: https://etcd.io/blog/2025/zombie_members_upgrade/, etcd-io/etcd issue 20793.
const (
	etcd36Since  = 34
	etcd36Before = "3.5.26"
)

// refuseEtcd refuses an upgrade from an etcd that is too old for the new one.
func (b *builder) refuseEtcd() error {
	var errs []error
	for _, h := range b.planes {
		if b.Target.Minor < etcd36Since || !b.PlaneLags(h.Machine) {
			continue
		}
		if c := h.Facts.ControlPlane; strings.HasPrefix(c.Etcd, "3.5.") && catalog.CompareDebian(c.Etcd, etcd36Before) < 0 {
			errs = append(errs, refuse(reason.EtcdTooOld, h.id, "etcd is %s, and Kubernetes %s comes with 3.6, which may follow %s or newer only", c.Etcd, b.Target, etcd36Before))
		}
	}
	return errors.Join(errs...)
}

// upgrades reports whether anything of the cluster's Kubernetes changes its version.
func (b *builder) upgrades() bool {
	return slices.ContainsFunc(b.hosts, func(h *host) bool { return b.Lags(h.Machine) })
}

// upgraded are the steps that let the nodes in again whose version changes.
func (b *builder) upgraded() (last []graph.Ref) {
	for _, h := range b.hosts {
		if b.Lags(h.Machine) {
			last = append(last, h.gpuLast...)
		}
	}
	return last
}

// once are these steps without those that are there twice, and without none.
func once(steps []graph.Ref) (out []graph.Ref) {
	for _, s := range steps {
		if s != (graph.Ref{}) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// kubeadmPackage plans that a host gets the kubeadm of the new version: it upgrades the rest.
func (b *builder) kubeadmPackage(h *host) {
	version, have := b.Target.String(), h.Facts.Packages["kubeadm"].Version
	var reasons []string
	if !strings.HasPrefix(have, version+"-") {
		reasons = append(reasons, "kubeadm is "+cmp.Or(have, "missing"))
	}
	b.unless(h, reasons, "kubeadm "+version+" is installed", graph.Step{
		Ref: graph.Ref{ID: "kube/kubeadm"}, Title: "install kubeadm " + version,
		Input: graph.Input{Values: map[string]string{"version": version, "packages": "kubeadm"}},
	})
}

// busyNodes warns of the nodes of which something is left for later.
func (b *builder) busyNodes() {
	for _, h := range b.hosts {
		if v := b.VersionOf(h.Machine); len(h.Facts.Busy) > 0 && !b.Target.IsZero() && v.Compare(b.Target) < 0 {
			h.stays = append(h.stays, "at Kubernetes "+v.String())
		}
		if len(h.stays) > 0 {
			b.warn("%s: its node stays %s for now, because pods with cards run there: %s; the next `kgpu up` goes on",
				h.id, strings.Join(h.stays, " and "), strings.Join(h.Facts.Busy, ", "))
		}
	}
}

// upgrade plans the change of the version: the control planes one after the other, the first with a snapshot before it, then the
// kubelets, each node drained.
func (b *builder) upgrade() {
	var planes []graph.Ref
	first := func(x, y *host) int { return cmp.Compare(b.turn(x), b.turn(y)) }
	for _, h := range slices.SortedStableFunc(slices.Values(b.planes), first) {
		if b.PlaneLags(h.Machine) {
			planes = []graph.Ref{b.upgradePlane(h, planes)}
		}
	}
	for _, h := range slices.SortedStableFunc(slices.Values(b.hosts), first) {
		b.cardsWaitFor(h, planes)
		b.upgradeNode(h, planes)
	}
	b.planesUpgraded = slices.DeleteFunc(planes, func(r graph.Ref) bool { return r.Host == b.first.id })
}

// cardsWaitFor has a node that is drained for its driver wait for the control planes: one that reboots while another one's etcd restarts
// would be two away.
func (b *builder) cardsWaitFor(h *host, planes []graph.Ref) {
	if h.drain == (graph.Ref{}) || h.drainedFirst {
		return
	}
	for _, s := range b.graph.Steps {
		if s.Ref == h.drain {
			s.Needs = once(slices.Concat(s.Needs, planes))
		}
	}
}

// turn orders the hosts of an upgrade: the first control plane, the others, workers.
func (b *builder) turn(h *host) int {
	switch {
	case h == b.first:
		return 0
	case h.IsControlPlane():
		return 1
	}
	return 2
}

// upgradePlane plans the upgrade of a control plane without its kubelet, after those before it.
func (b *builder) upgradePlane(h *host, before []graph.Ref) graph.Ref {
	how, why := "node", fmt.Sprintf("its API server is %s", machine.RunningVersion(h.Facts))
	if h == b.first {
		how = "apply"
	}
	if h.Facts.Upgrading == machine.UpgradingPlane {
		why = "its upgrade did not come to its end"
	} else if h == b.first {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "cluster/snapshot"}, Reason: "before its Kubernetes changes",
			Input: graph.Input{Values: map[string]string{"version": b.Versions.Running.String(), "criSocket": b.criSocket()}},
		})
	}
	values := map[string]string{"version": b.Target.String(), "how": how}
	if gates := b.newGates(); len(gates) > 0 && how == "apply" {
		values["gates"] = lines(gates...)
	}
	return b.add(h, graph.Step{
		Ref: graph.Ref{ID: "cluster/upgrade"}, Title: "upgrade the control plane to " + b.Target.String() + " (kubeadm upgrade)", Reason: why,
		Needs: before, Input: graph.Input{Values: b.upgradeValues(values)},
	})
}

// newGates are kubelets' gates that this version needs, and a cluster of an older one was made without.
func (b *builder) newGates() []string {
	if b.webSocketFault() {
		return []string{"ExtendWebSocketsToKubelet=false"}
	}
	return nil
}

// upgradeValues adds what every kubeadm upgrade reads. It knows of no file what the inventory says.
func (b *builder) upgradeValues(values map[string]string) map[string]string {
	values["criSocket"] = b.criSocket()
	if ignore := b.Inventory.Kubernetes.IgnorePreflightErrors; len(ignore) > 0 {
		values["flags"] = "--ignore-preflight-errors=" + strings.Join(ignore, ",")
	}
	return values
}

// upgradeNode plans that a node's kubelet changes, when the control planes have.
func (b *builder) upgradeNode(h *host, planes []graph.Ref) {
	has, lags := b.NodeLags(h.Machine)
	if !lags {
		return
	}
	why := fmt.Sprintf("its kubelet is %s", has)
	if h.Facts.Upgrading == machine.UpgradingNode {
		why = "its upgrade did not come to its end"
	}
	values := map[string]string{"version": b.Target.String(), "node": h.node}
	if !h.IsControlPlane() {
		values["worker"] = "yes"
	}
	step := graph.Step{
		Ref: graph.Ref{ID: "kube/upgrade"}, Title: "upgrade the kubelet to " + b.Target.String(), Reason: why,
		Disrupts: "the kubelet changes", Input: graph.Input{Values: b.upgradeValues(values)},
	}
	after := slices.Concat(planes, h.last)
	b.drainNode(h, fmt.Sprintf("its Kubernetes goes from %s to %s", has, b.Target), false, once(after)...)
	h.last = once(slices.Concat(after, h.gpuLast, []graph.Ref{h.drain}))
	b.add(h, step)
	h.gpuLast = nil
}
