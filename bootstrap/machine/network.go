package machine

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// OwnCNI are the names of the CNI configurations that each pod network writes to /etc/cni/net.d.
var OwnCNI = map[inventory.Network][]string{
	inventory.Weave:   {"10-weave.conflist", "10-weave.conf"},
	inventory.Flannel: {"10-flannel.conflist"},
	inventory.Calico:  {"10-calico.conflist"},
}

const cniDir = "/etc/cni/net.d/"

// StaleCNI are files and links of a former pod network on a host that is in no cluster. With them nodes become Ready
// before their new network is up, and pods get addresses of the wrong range.
type StaleCNI struct {
	Known   []string // of networks that kgpu can install, so that it knows how to remove them
	Unknown []string // configurations of other networks that would take precedence over the inventory's
}

// StaleCNIOf finds them. It ignores what an interrupted kgpu run made, which the next run replaces, and everything
// if the operator brings the network.
func StaleCNIOf(network inventory.Network, f *facts.Host) StaleCNI {
	var l StaleCNI
	if r := f.Recorded; network == inventory.None || f.Kubelet != nil || f.ControlPlane != nil || r != nil && (r.Init || r.Join) {
		return l
	}
	l.Known = slices.Clone(f.PodLinks)
	var unknown []string
	for _, p := range f.PodNetworkFiles {
		if ownCNIFile(p) {
			l.Known = append(l.Known, p)
		} else {
			unknown = append(unknown, p)
		}
	}
	l.Unknown = ConflictingCNI(network, unknown)
	return l
}

// ownCNIFile reports whether a file belongs to a pod network that kgpu can install.
func ownCNIFile(p string) bool {
	if !strings.HasPrefix(p, cniDir) {
		return true // flannel's files below /run
	}
	for _, names := range OwnCNI {
		if names[0] == path.Base(p) {
			return true
		}
	}
	return false
}

// ConflictingCNI returns the configurations that container runtimes would use instead of the network's own, because
// theirs is first by name. Later ones, such as podman's 87-podman-bridge.conflist, do no harm, and kgpu removes its
// own.
func ConflictingCNI(network inventory.Network, paths []string) []string {
	var found []string
	for _, p := range paths {
		name := path.Base(p)
		switch {
		case !strings.HasPrefix(p, cniDir), slices.Contains(OwnCNI[network], name), strings.Contains(name, "kgpu"):
		case ownCNIFile(p), name < OwnCNI[network][0]:
			found = append(found, p)
		}
	}
	return found
}

// ResolvConf is the resolv.conf that the host's kubelet gives to pods: the kubelet's default, or else one of the host
// resolver's, if pods can ask its servers. If there is none, path is empty and why says what is wrong with the
// default. Both are empty if the inventory chooses the file itself.
func ResolvConf(inv *inventory.Inventory, f *facts.Host) (path, why string) {
	if _, chosen := inv.Kubernetes.KubeletConfiguration["resolvConf"]; chosen || f.Resolvers == nil {
		return "", ""
	}
	own := KubeletResolvConf(inv, f)
	if why = unusableResolver(inv, f, own); why == "" {
		return own, ""
	}
	for _, path := range facts.ResolvConfs {
		if unusableResolver(inv, f, path) == "" {
			return path, ""
		}
	}
	return "", why
}

// KubeletResolvConf is the kubelet's default resolv.conf: kubeadm names systemd-resolved's file if that service runs.
// Source: cmd/kubeadm/app/phases/kubelet/flags.go of k8s.io/kubernetes 1.11, componentconfigs/kubelet.go since.
func KubeletResolvConf(inv *inventory.Inventory, f *facts.Host) string {
	minor, _ := catalog.Kubernetes(inv.Kubernetes.Version.Minor)
	if f.Units["systemd-resolved.service"].Active == "active" && minor.Has(catalog.KubeletConfig) {
		return facts.SystemdResolvConf
	}
	return facts.ResolvConfs[0]
}

// unusableResolver says why pods cannot use the name servers of a file; empty if they can. In a pod a loopback
// address is the pod's own, so the cluster's DNS would forward queries to itself. The same holds for addresses of the
// cluster's ranges.
func unusableResolver(inv *inventory.Inventory, f *facts.Host, path string) string {
	servers := f.Resolvers[path]
	k := inv.Kubernetes
	local := slices.IndexFunc(servers, func(a netip.Addr) bool {
		return a.IsLoopback() || a.IsUnspecified() || k.ServiceCIDR.Contains(a) || k.PodCIDR.Contains(a)
	})
	switch {
	case local >= 0:
		return fmt.Sprintf("%s names the server %s, which in a pod is not that of the host: the cluster's DNS would ask itself", path, servers[local])
	case !slices.ContainsFunc(servers, netip.Addr.Is4):
		return path + " names no server with an IPv4 address, and pods have no other"
	}
	return ""
}

// NetworkWorkload is the DaemonSet of each pod network, as facts name workloads.
var NetworkWorkload = map[inventory.Network]string{
	inventory.Weave:   "kube-system/daemonset/weave-net",
	inventory.Flannel: "kube-flannel/daemonset/kube-flannel-ds",
	inventory.Calico:  "kube-system/daemonset/calico-node",
}

// WeaveDatapath reports whether a cluster runs weave, and whether on the fast datapath, which needs openvswitch on
// every node. Both are false if c is nil.
func WeaveDatapath(c *facts.Cluster) (fast, runs bool) {
	if c == nil {
		return false, false
	}
	w, runs := c.Workloads[NetworkWorkload[inventory.Weave]]
	return runs && !w.Bridge, runs
}

// Purpose says why a host connects to an endpoint.
type Purpose string

// The purposes.
const (
	Packages Purpose = "packages" // package repositories, keys and other downloads
	Images   Purpose = "images"
	ByProxy  Purpose = "the proxy"
	ToAPI    Purpose = "the API server"
	ToNode   Purpose = "another node"
	ToEtcd   Purpose = "etcd of another control plane"
)

// RequiredEndpoint is an endpoint that a host must be able to reach.
type RequiredEndpoint struct {
	facts.Endpoint
	Purpose Purpose
	// Listens means that the port must be open. Otherwise it is enough that the machine answers. An API server gets half a minute.
	Listens bool
	// Scheme is the URL scheme if apt fetches from there, perhaps through its proxy; empty if apt does not.
	Scheme string
}

// String is the format that scripts/reach.sh reads.
func (n RequiredEndpoint) String() string {
	if n.Purpose == ToAPI && n.Listens {
		return n.Endpoint.String() + " awaited"
	}
	return strings.TrimSpace(n.Endpoint.String() + " " + n.Scheme)
}
