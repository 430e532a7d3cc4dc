package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Archive is what a plan has to know of a backup.
type Archive struct {
	Sum        string // by which hosts know it
	Token      string // of the etcd that is made of it: another one for each restore
	CA         string // hash of the public key of the cluster's CA
	Cluster    string // its name
	Kubernetes string // its version
	Etcd       string // of its etcd
	Endpoint   string // host:port by which its nodes reach the API server
	Encrypted  bool   // its Secrets are encrypted
	Made       time.Time
	Size       int64             // bytes that a control plane is sent
	Sums       map[string]string // by the names of the files that it is sent
	Settings   Settings
	Nodes      map[string]string // its nodes, with their addresses
}

// Settings are what a cluster was made with and cannot change.
type Settings struct {
	Runtime, Network, PodCIDR, ServiceCIDR string
}

// SettingsOf are those of a cluster that runs.
func SettingsOf(set *machine.Set) Settings {
	inv := set.Inventory
	return Settings{
		Runtime: string(inv.Runtime), Network: string(inv.Network), PodCIDR: inv.Kubernetes.PodCIDR.String(), ServiceCIDR: inv.Kubernetes.ServiceCIDR.String(),
	}
}

// For is the inventory for the cluster of the archive: what cannot change is as it was there, where the file does not ask for something else.
// Which Kubernetes it has is told by its hosts: see On.
func (a Archive) For(inv *inventory.Inventory) (*inventory.Inventory, error) {
	if a.Cluster != inv.Cluster {
		return nil, refuse(reason.BackupForeign, "", "the archive is of the cluster %s, and the inventory of %s", a.Cluster, inv.Cluster)
	}
	_, noVersion := catalog.ParseVersion(a.Kubernetes)
	pods, noPods := netip.ParsePrefix(a.Settings.PodCIDR)
	services, noServices := netip.ParsePrefix(a.Settings.ServiceCIDR)
	if err := cmp.Or(noVersion, noPods, noServices); err != nil {
		return nil, &reason.Error{ID: reason.BackupDamaged, Doing: "reading the archive", Err: err}
	}
	out := *inv
	k := &out.Kubernetes
	for _, setting := range []struct{ key, runs, wants string }{
		{"kubernetes.podCIDR", pods.String(), k.PodCIDR.String()},
		{"kubernetes.serviceCIDR", services.String(), k.ServiceCIDR.String()},
		{"network", a.Settings.Network, string(inv.Network)},
		{"runtime", a.Settings.Runtime, string(inv.Runtime)},
	} {
		if at := inv.At(setting.key); at != "" && setting.runs != setting.wants {
			return nil, a.differs(at, setting.key, setting.runs, setting.wants)
		}
	}
	k.PodCIDR, k.ServiceCIDR = pods, services
	out.Runtime, out.Network, out.Security.EncryptSecrets = inventory.Runtime(a.Settings.Runtime), inventory.Network(a.Settings.Network), a.Encrypted
	return &out, nil
}

func (a Archive) differs(at, key, has, wants string) error {
	return &reason.Error{
		ID: reason.ClusterSettingFixed, Doing: "planning",
		Detail: fmt.Sprintf("%s: %s: the cluster that comes back has %s, and the inventory wants %s", at, key, has, wants),
		Advice: fmt.Sprintf("write `%s` there for now", has),
	}
}

// On is the inventory of For with the Kubernetes that the cluster comes back with: the archive's, or what hosts that keep theirs have,
// where it is newer, as after an upgrade: no host goes back. An API server reads what its own version or the minor before it has stored,
// and etcd a snapshot of its own minor. Sources: https://kubernetes.io/releases/version-skew-policy/, etcd-io/etcd issue 13070.
func (a Archive) On(inv *inventory.Inventory, seen map[string]*facts.Host) (*inventory.Inventory, error) {
	b, err := newIdentified(inv, seen)
	if err != nil {
		return nil, err
	}
	version, err := catalog.ParseVersion(a.Kubernetes)
	if err != nil {
		return nil, err
	}
	made := version
	for _, h := range b.hosts {
		var has inventory.Version
		switch {
		case b.keepsItsFiles(h, a):
			has = machine.RunningVersion(h.Facts)
		case !h.IsControlPlane() && kubeletCA(h.Facts.Kubelet) == a.CA:
			has = machine.KubeletVersion(h.Facts)
		}
		switch {
		case has.IsZero():
		case h.IsControlPlane() && has.Minor < made.Minor:
			return nil, a.skewed(h, has, fmt.Sprintf("bring the cluster to Kubernetes 1.%d first, or `kgpu reset` it: then it is made anew", made.Minor))
		case has.Minor > made.Minor+1 || a.otherEtcd(h, made, has):
			return nil, a.skewed(h, has, "`kgpu reset` the cluster: then it is made anew with the Kubernetes of the archive, and `kgpu upgrade` takes it from minor to minor")
		case has.Compare(version) > 0:
			version = has
		}
	}
	out := *inv
	k := &out.Kubernetes
	minor := k.Pin == inventory.PinnedMinor && version.Minor == k.Version.Minor
	if at := inv.At("kubernetes.version"); at != "" && version != k.Version && !minor {
		return nil, a.differs(at, "kubernetes.version", version.String(), k.Version.String())
	}
	k.Version, k.Pin = version, inventory.PinnedExact
	return &out, nil
}

// otherEtcd reports whether the host's etcd is, or will be, of another minor than that of the archive.
func (a Archive) otherEtcd(h *host, made, has inventory.Version) bool {
	if c := h.Facts.ControlPlane; c != nil && c.Etcd != "" && a.Etcd != "" {
		return etcdMinor(c.Etcd) != etcdMinor(a.Etcd)
	}
	return made.Minor < etcd36Since && has.Minor >= etcd36Since
}

// etcdMinor is "3.6" of "3.6.5-0".
func etcdMinor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func (a Archive) skewed(h *host, has inventory.Version, advice string) error {
	return &reason.Error{ID: reason.KubernetesSkew, Host: h.id, Doing: "planning", Advice: advice,
		Detail: fmt.Sprintf("the archive's data is that of Kubernetes %s, and the host has %s", a.Kubernetes, has)}
}
