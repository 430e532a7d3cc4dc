package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// kubeletDropIn is kgpu's own: the packaged one, whose name sorts before it, stays as it is.
const kubeletDropIn = "/etc/systemd/system/kubelet.service.d/90-kgpu.conf"

// weaveCNI is what kubelet 1.6 reads for weave: it does not know the lists that weave writes.
const weaveCNI = "/etc/cni/net.d/10-weave.conf"

// kubeletFiles configure the kubelet where kubeadm does not. The packaged command ends with $KUBELET_EXTRA_ARGS, and of a flag
// that is there twice the last one counts; but for --cluster-dns, which adds up.
// Source: build/debs/kubeadm-10.conf of k8s.io/kubernetes 1.6.13 and 1.8.15, build/debs/10-kubeadm.conf of 1.9.11 and 1.10.13;
// its form of 1.11, which reads KubeletConfiguration.
func (b *builder) kubeletFiles(h *host) map[string]graph.File {
	if b.Minor.Has(catalog.KubeletConfig) {
		return nil
	}
	args := []string{
		"--cgroup-driver=systemd",
		"--feature-gates=" + formatGates(b.Minor.Gates(b.Inventory.Kubernetes.FeatureGates)),
		"--node-ip=" + h.addr.String(),
	}
	if path := b.resolvConf(h); path != "" {
		args = append(args, "--resolv-conf="+path)
	}
	args = append(args, closedPorts(h)...)
	if h.node != strings.ToLower(h.Facts.Hostname) {
		args = append(args, "--hostname-override="+h.node)
	}
	if b.Inventory.Registry != "" {
		args = append(args, "--pod-infra-container-image="+b.Minor.PauseImage(b.Inventory.Registry))
	}
	unit := fmt.Sprintf(kubeletUnit, clusterDNS(b.Inventory.Kubernetes.ServiceCIDR), strings.Join(args, " "))
	if b.mechanism() == catalog.Accelerators && len(machine.Cards(b.Inventory, h.Facts)) > 0 {
		unit += deviceNodes
	}
	files := map[string]graph.File{kubeletDropIn: text(unit)}
	if b.Inventory.Network == inventory.Weave && !b.Minor.Has(catalog.CNILists) {
		files[weaveCNI] = text(`{"name": "weave", "type": "weave-net", "hairpinMode": true}` + "\n")
	}
	return files
}

// startKubelet plans that the kubelet of a member runs, before all else on the host: without it no pod leaves the node, and an API
// server that has ended does not come back. An upgrade of the node that was cut off, and goes on now, starts it itself. While no API server
// answers, a host that kgpu neither joined nor took over counts as a member, too: its kubelet is left alone.
func (b *builder) startKubelet(h *host) {
	_, lags := b.NodeLags(h.Machine)
	if b.Verdict(h.Machine).Membership != machine.Member || h.Facts.Recorded == nil || lags && h.Facts.Upgrading == machine.UpgradingNode {
		return
	}
	reason := ""
	switch u := h.Facts.Units[kubeletService]; {
	case u.Active == "inactive", u.Active == "failed": // one that systemd starts again and again fails for another reason
		reason = kubeletService + " is not running"
	case u.Enabled == "disabled" && !h.Adopted():
		reason = kubeletService + " is not enabled"
	default:
		return
	}
	h.started = b.add(h, graph.Step{Ref: graph.Ref{ID: "kube/start"}, Reason: reason})
}

const kubeletService = "kubelet.service"

// closedPorts are the flags that leave nobody without a certificate in: the kubelet of that time answers anonymous requests, and
// has a port where everybody may read. kubeadm init looks for it on the control plane, and fails where it is closed.
// Whom certificates let in, the packaged unit says: --authorization-mode=Webhook with the cluster's certificate authority.
// Source: cmd/kubeadm/app/cmd/init.go (waitForAPIAndKubelet) of k8s.io/kubernetes 1.8 to 1.10, and the units above.
func closedPorts(h *host) []string {
	if h.IsControlPlane() {
		return []string{"--anonymous-auth=false"}
	}
	return []string{"--anonymous-auth=false", "--read-only-port=0"}
}

const kubeletUnit = `# Written by kgpu.
[Service]
Environment="KUBELET_DNS_ARGS=--cluster-dns=%s --cluster-domain=cluster.local"
Environment="KUBELET_EXTRA_ARGS=%s"
`

// deviceNodes has the driver loaded and its devices made before the kubelet looks for them, which it does once.
// Source: pkg/kubelet/gpu/nvidia/nvidia_gpu_manager.go (Start).
const deviceNodes = `ExecStartPre=-/usr/bin/nvidia-modprobe -u -c 0
`

// clusterDNS is the address that kubeadm gives the cluster's DNS: the tenth of the services'.
// Source: GetDNSIP in cmd/kubeadm/app/constants/constants.go.
func clusterDNS(services netip.Prefix) netip.Addr {
	address := services.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	return address
}

// mechanism is how the cluster's pods get cards.
func (b *builder) mechanism() catalog.Mechanism {
	return b.Minor.Mechanism(b.Inventory.Kubernetes.FeatureGates)
}

// resolvConf is the kubelet's flag; empty: it takes the right file by itself. Some versions of kubeadm give all nodes the
// control plane's file, which a node without systemd-resolved does not have.
func (b *builder) resolvConf(h *host) string {
	want, _ := machine.ResolvConf(b.Inventory, h.Facts)
	if want == machine.KubeletResolvConf(b.Inventory, h.Facts) && want == machine.KubeletResolvConf(b.Inventory, b.first.Facts) {
		return ""
	}
	return want
}
