package plan

import "kgpu.dev/kgpu/bootstrap/machine"

// resolvConf is the kubelet's flag; empty: it takes the right file by itself. Some versions of kubeadm give all nodes the
// control plane's file, which a node without systemd-resolved does not have.
func (b *builder) resolvConf(h *host) string {
	want, _ := machine.ResolvConf(b.Inventory, h.Facts)
	if want == machine.KubeletResolvConf(b.Inventory, h.Facts) && want == machine.KubeletResolvConf(b.Inventory, b.first.Facts) {
		return ""
	}
	return want
}
