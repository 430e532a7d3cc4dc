package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// ResolvConf is the file whose name servers the kubelet of a host is to give to pods: the first that has servers which pods
// can ask, of the one that the kubelet takes by itself and those of the host's resolver. why says what is wrong with the
// former where there is none; the inventory's own choice is not judged.
func ResolvConf(inv *inventory.Inventory, f *facts.Host) (path, why string) {
	if _, chosen := inv.Kubernetes.KubeletConfiguration["resolvConf"]; chosen || f.Resolvers == nil {
		return "", ""
	}
	own := kubeletResolvConf(inv, f)
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

// kubeletResolvConf is what the kubelet reads if nobody says anything: kubeadm names systemd-resolved's file where that runs.
// Source: cmd/kubeadm/app/phases/kubelet/flags.go of k8s.io/kubernetes 1.11, componentconfigs/kubelet.go since.
func kubeletResolvConf(inv *inventory.Inventory, f *facts.Host) string {
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

// resolvConf is the kubelet's flag; empty: it takes the right file by itself. Some versions of kubeadm give all nodes the
// control plane's file, which a node without systemd-resolved does not have.
func (b *builder) resolvConf(h *host) string {
	want, _ := ResolvConf(b.inv, h.facts)
	if want == kubeletResolvConf(b.inv, h.facts) && want == kubeletResolvConf(b.inv, b.first.facts) {
		return ""
	}
	return want
}
