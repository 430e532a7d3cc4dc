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

// OwnCNI are the configurations that the pod networks write, by their names below /etc/cni/net.d.
var OwnCNI = map[inventory.Network][]string{
	inventory.Weave:   {"10-weave.conflist", "10-weave.conf"},
	inventory.Flannel: {"10-flannel.conflist"},
	inventory.Calico:  {"10-calico.conflist"},
}

const cniDir = "/etc/cni/net.d/"

// Leftovers are what a pod network of a former life left on a host that is a member of nothing. With it, nodes are Ready
// before their network is, and pods get addresses of the wrong range.
type Leftovers struct {
	Known   []string // of networks that kgpu applies: it knows how to remove them
	Unknown []string // configurations of others that would come before the inventory's network
}

// LeftoversOf finds them. What kgpu itself left half-made goes when it is made again, and a network that the operator brings
// is none of kgpu's business.
func LeftoversOf(network inventory.Network, f *facts.Host) Leftovers {
	var l Leftovers
	if r := f.Recorded; network == inventory.None || f.Kubelet != nil || f.ControlPlane != nil || r != nil && (r.Init || r.Join) {
		return l
	}
	l.Known = slices.Clone(f.PodLinks)
	var unknown []string
	for _, p := range f.PodNetwork {
		if known(p) {
			l.Known = append(l.Known, p)
		} else {
			unknown = append(unknown, p)
		}
	}
	l.Unknown = ConflictingCNI(network, unknown)
	return l
}

// known reports whether a file is of a pod network that kgpu applies.
func known(p string) bool {
	if !strings.HasPrefix(p, cniDir) {
		return true // what flannel keeps below /run
	}
	for _, names := range OwnCNI {
		if names[0] == path.Base(p) {
			return true
		}
	}
	return false
}

// ConflictingCNI are the configurations that runtimes take in place of the network's own: they take the first by name. Those
// that come after it, such as podman's 87-podman-bridge.conflist, do no harm; kgpu's own are gone with the step that made them.
func ConflictingCNI(network inventory.Network, paths []string) []string {
	var found []string
	for _, p := range paths {
		name := path.Base(p)
		switch {
		case !strings.HasPrefix(p, cniDir), slices.Contains(OwnCNI[network], name), strings.Contains(name, "kgpu"):
		case known(p), name < OwnCNI[network][0]:
			found = append(found, p)
		}
	}
	return found
}

// ResolvConf is the file whose name servers the kubelet of a host is to give to pods: the first that has servers which pods
// can ask, of the one that the kubelet takes by itself and those of the host's resolver. why says what is wrong with the
// former where there is none; the inventory's own choice is not judged.
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

// KubeletResolvConf is what the kubelet reads if nobody says anything: kubeadm names systemd-resolved's file where that runs.
// Source: cmd/kubeadm/app/phases/kubelet/flags.go of k8s.io/kubernetes 1.11, componentconfigs/kubelet.go since.
func KubeletResolvConf(inv *inventory.Inventory, f *facts.Host) string {
	minor, _ := catalog.Kubernetes(inv.Kubernetes.Version.Minor)
	if f.Units["systemd-resolved.service"].Active == "active" && minor.HasKubeletConfig() {
		return facts.SystemdResolvConf
	}
	return facts.ResolvConfs[0]
}

// unusableResolver says why pods cannot ask the servers of a file; empty: they can. In a pod, a loopback address is the pod
// itself: the cluster's DNS, which hands on what it does not know, would ask itself, as with an address of the cluster's own.
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

// NetworkWorkload is the DaemonSet that makes a pod network, as facts name workloads.
var NetworkWorkload = map[inventory.Network]string{
	inventory.Weave:   "kube-system/daemonset/weave-net",
	inventory.Flannel: "kube-flannel/daemonset/kube-flannel-ds",
	inventory.Calico:  "kube-system/daemonset/calico-node",
}

// WeaveDatapath says whether a cluster runs weave, and on the fast datapath, which needs openvswitch on every node. Of one that
// nobody tells of, nil, it does not.
func WeaveDatapath(c *facts.Cluster) (fast, runs bool) {
	if c == nil {
		return false, false
	}
	w, runs := c.Workloads[NetworkWorkload[inventory.Weave]]
	return runs && !w.Bridge, runs
}

// Purpose says what a host connects to an endpoint for.
type Purpose string

// The purposes.
const (
	Packages Purpose = "packages" // package repositories, keys and other downloads
	Images   Purpose = "images"
	ByProxy  Purpose = "the proxy"
	ToAPI    Purpose = "the API server"
	ToNode   Purpose = "another node"
)

// Need is an endpoint that a host must reach.
type Need struct {
	facts.Endpoint
	Purpose Purpose
	// Listens: something listens there now. Otherwise it is enough that the machine answers.
	Listens bool
	// Scheme is that of what the host fetches there as apt does: by apt's proxy, if there is one. Empty: it does not.
	Scheme string
}

// String is how the script that tries endpoints reads it.
func (n Need) String() string { return strings.TrimSpace(n.Endpoint.String() + " " + n.Scheme) }
