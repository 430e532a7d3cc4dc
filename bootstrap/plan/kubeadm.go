package plan

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/scripts/manifests"
)

// initConfig is the one file that kubeadm init reads, in the API version that the minor wants.
func (b *builder) initConfig() (string, error) {
	k := b.inv.Kubernetes
	api := "kubeadm.k8s.io/" + b.minor.KubeadmAPI
	initConfiguration := map[string]any{
		"apiVersion": api, "kind": "InitConfiguration",
		// kubeadm always makes a token; this one is of no use to anybody and short-lived.
		"bootstrapTokens":  []any{map[string]any{"ttl": "1m0s", "description": "kgpu init"}},
		"localAPIEndpoint": map[string]any{"advertiseAddress": b.cp.addr.String(), "bindPort": apiPort},
		"nodeRegistration": b.nodeRegistration(b.cp),
	}
	cluster := map[string]any{
		"apiVersion": api, "kind": "ClusterConfiguration",
		"clusterName":       b.inv.Cluster,
		"kubernetesVersion": "v" + k.Version.String(),
		"networking":        map[string]any{"podSubnet": k.PodCIDR.String(), "serviceSubnet": k.ServiceCIDR.String()},
		"apiServer":         map[string]any{"certSANs": b.certSANs()},
	}
	if k.ControlPlaneEndpoint != "" {
		cluster["controlPlaneEndpoint"] = k.ControlPlaneEndpoint
	}
	if b.inv.Registry != "" {
		cluster["imageRepository"] = b.inv.Registry
		cluster["dns"] = map[string]any{"imageRepository": b.inv.Registry + "/coredns"}
	}
	if gates := formatGates(k.FeatureGates); gates != "" {
		for _, component := range []string{"apiServer", "controllerManager", "scheduler"} {
			part, _ := cluster[component].(map[string]any)
			cluster[component] = merge(part, map[string]any{"extraArgs": b.extraArgs(map[string]string{"feature-gates": gates})})
		}
	}
	kubelet := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": "systemd",
	}
	gates := map[string]any{}
	if b.webSocketFault() {
		gates["ExtendWebSocketsToKubelet"] = false
	}
	for name, on := range k.FeatureGates {
		gates[name] = on
	}
	if len(gates) > 0 {
		kubelet["featureGates"] = gates
	}
	proxy := map[string]any{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
	return manifests.Encode(
		initConfiguration,
		merge(cluster, k.ClusterConfiguration),
		merge(kubelet, k.KubeletConfiguration),
		merge(proxy, k.KubeProxyConfiguration),
	)
}

// joinConfig is the file that kubeadm join reads. It holds a bootstrap token.
func (b *builder) joinConfig(h *host, token, caHash string) (string, error) {
	return manifests.Encode(map[string]any{
		"apiVersion": "kubeadm.k8s.io/" + b.minor.KubeadmAPI, "kind": "JoinConfiguration",
		"discovery": map[string]any{"bootstrapToken": map[string]any{
			"token": token, "apiServerEndpoint": b.endpoint(), "caCertHashes": []any{caHash},
		}},
		"nodeRegistration": b.nodeRegistration(h),
	})
}

func (b *builder) nodeRegistration(h *host) map[string]any {
	r := map[string]any{
		"name":             h.node,
		"criSocket":        b.criSocket(),
		"kubeletExtraArgs": b.extraArgs(map[string]string{"node-ip": h.addr.String()}),
	}
	if ignore := b.inv.Kubernetes.IgnorePreflightErrors; len(ignore) > 0 {
		r["ignorePreflightErrors"] = ignore
	}
	return r
}

// extraArgs writes flags as the API version wants them: a list of names and values since v1beta4, a map before.
// Source: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/.
func (b *builder) extraArgs(flags map[string]string) any {
	if b.minor.KubeadmAPI != "v1beta4" {
		return flags
	}
	var list []any
	for _, name := range sortedKeys(flags) {
		list = append(list, map[string]any{"name": name, "value": flags[name]})
	}
	return list
}

// certSANs are the names under which people reach the API server.
func (b *builder) certSANs() []string {
	names := []string{b.cp.addr.String(), b.cp.Address}
	if host, _, err := net.SplitHostPort(b.inv.Kubernetes.ControlPlaneEndpoint); err == nil {
		names = append(names, host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

const apiPort = 6443

// endpoint is where the kubelets reach the API server.
func (b *builder) endpoint() string {
	if e := b.inv.Kubernetes.ControlPlaneEndpoint; e != "" {
		return e
	}
	return netip.AddrPortFrom(b.cp.addr, apiPort).String()
}

func formatGates(gates map[string]bool) string {
	var list []string
	for _, name := range sortedKeys(gates) {
		list = append(list, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return strings.Join(list, ",")
}
