package plan

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/scripts/manifests"
)

// initConfig is the one file that kubeadm init reads, in the API version that the minor wants. What the user says of the
// cluster goes into the document that has the cluster's settings.
func (b *builder) initConfig() (string, error) {
	k := b.Inventory.Kubernetes
	switch b.Minor.KubeadmAPI {
	case "v1alpha1", "v1alpha2":
		return manifests.Encode(merge(b.masterConfiguration(), k.ClusterConfiguration))
	}
	cluster := merge(b.clusterConfiguration(), k.ClusterConfiguration)
	if b.Minor.KubeadmAPI != "v1alpha3" {
		cluster = merge(cluster, object{"apiServer": object{"certSANs": names(append(b.certSANs(), b.wantedNames(b.first)...))}})
	}
	return manifests.Encode(
		b.initConfiguration(), cluster,
		b.kubeletConfiguration(),
		b.proxyConfiguration(),
	)
}

func (b *builder) initConfiguration() object {
	endpoint := "localAPIEndpoint"
	if b.Minor.KubeadmAPI == "v1alpha3" {
		endpoint = "apiEndpoint"
	}
	return object{
		"apiVersion": b.kubeadmAPI(), "kind": "InitConfiguration",
		"bootstrapTokens":  initTokens(),
		endpoint:           advertised(b.first),
		"nodeRegistration": b.nodeRegistration(b.first),
	}
}

// initTokens is the token that kubeadm always makes; this one is of no use to anybody and short-lived.
func initTokens() []any {
	return []any{object{"ttl": "1m0s", "description": "kgpu init"}}
}

func (b *builder) kubeadmAPI() string { return "kubeadm.k8s.io/" + b.Minor.KubeadmAPI }

// advertised is where the API server of a control plane is for the others.
func advertised(h *host) object {
	return object{"advertiseAddress": h.addr.String(), "bindPort": catalog.APIPort}
}

func (b *builder) clusterConfiguration() object {
	k := b.Inventory.Kubernetes
	cluster := object{
		"apiVersion": b.kubeadmAPI(), "kind": "ClusterConfiguration",
		"clusterName":       b.Inventory.Cluster,
		"kubernetesVersion": "v" + k.Version.String(),
		"networking":        b.networking(),
	}
	if e := b.ControlPlaneEndpoint(); e != "" {
		cluster["controlPlaneEndpoint"] = e
	}
	if b.Inventory.Registry != "" {
		cluster["imageRepository"] = b.Inventory.Registry
		if b.Minor.Has(catalog.DNSFolder) {
			cluster["dns"] = object{"imageRepository": b.Inventory.Registry + "/coredns"}
		}
	}
	if b.Minor.KubeadmAPI == "v1alpha3" {
		b.flatComponents(cluster)
		return cluster
	}
	cluster["apiServer"] = object{"certSANs": b.certSANs()}
	b.components(cluster)
	return cluster
}

func (b *builder) networking() object {
	k := b.Inventory.Kubernetes
	return object{"podSubnet": k.PodCIDR.String(), "serviceSubnet": k.ServiceCIDR.String()}
}

func (b *builder) kubeletConfiguration() object {
	kubelet := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": "systemd",
	}
	gates := object{}
	if b.webSocketFault() {
		gates["ExtendWebSocketsToKubelet"] = false
	}
	for name, on := range b.Inventory.Kubernetes.FeatureGates {
		gates[name] = on
	}
	if len(gates) > 0 {
		kubelet["featureGates"] = gates
	}
	if b.Minor.Secured() {
		kubelet["seccompDefault"] = true
	}
	return merge(kubelet, b.Inventory.Kubernetes.KubeletConfiguration)
}

func (b *builder) proxyConfiguration() object {
	proxy := object{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
	return merge(proxy, b.Inventory.Kubernetes.KubeProxyConfiguration)
}

// joinConfig is the file that kubeadm join reads. It holds a bootstrap token, and for a control plane the key of the certificates that
// are laid out for it.
func (b *builder) joinConfig(h *host, token, caHash, certificateKey string) (string, error) {
	switch b.Minor.KubeadmAPI {
	case "v1alpha1", "v1alpha2", "v1alpha3":
		return manifests.Encode(b.nodeConfiguration(h, token, caHash))
	}
	config := object{
		"apiVersion": b.kubeadmAPI(), "kind": "JoinConfiguration",
		"discovery": object{"bootstrapToken": object{
			"token": token, "apiServerEndpoint": b.Endpoint(), "caCertHashes": []any{caHash},
		}},
		"nodeRegistration": b.nodeRegistration(h),
	}
	if h.IsControlPlane() {
		config["controlPlane"] = object{"localAPIEndpoint": advertised(h), "certificateKey": certificateKey}
	}
	return manifests.Encode(config)
}

func (b *builder) nodeRegistration(h *host) map[string]any {
	flags := map[string]string{"node-ip": h.addr.String()}
	if path := b.resolvConf(h); path != "" {
		flags["resolv-conf"] = path
	}
	r := map[string]any{
		"name":             h.node,
		"criSocket":        b.criSocket(),
		"kubeletExtraArgs": b.extraArgs(flags),
	}
	if ignore := b.Inventory.Kubernetes.IgnorePreflightErrors; len(ignore) > 0 && b.Minor.Has(catalog.IgnoreInFile) {
		r["ignorePreflightErrors"] = ignore
	}
	return r
}

// extraArgs writes flags as the API version wants them: a list of names and values since v1beta4, a map before.
// Source: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/.
func (b *builder) extraArgs(flags map[string]string) any {
	if b.Minor.KubeadmAPI != "v1beta4" {
		out := object{}
		for name, value := range flags {
			out[name] = value
		}
		return out
	}
	var list []any
	for _, name := range sortedKeys(flags) {
		list = append(list, map[string]any{"name": name, "value": flags[name]})
	}
	return list
}

// certSANs are the names under which people reach the API servers of a new cluster: those that all have in common, and each one's own.
func (b *builder) certSANs() []string {
	list := b.commonNames()
	for _, h := range b.planes {
		list = append(list, h.addr.String(), h.Address)
	}
	return names(list)
}

// commonNames are the names that lead to whichever control plane works.
func (b *builder) commonNames() (list []string) {
	if v := b.Inventory.Kubernetes.VirtualIP; v.IsValid() {
		list = append(list, v.String())
	}
	if host, _, err := net.SplitHostPort(b.ControlPlaneEndpoint()); err == nil {
		list = append(list, host)
	}
	return list
}

// names are those of a list, each once, as kubeadm takes them.
func names(list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = plainName(out[i])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func formatGates(gates map[string]bool) string {
	var list []string
	for _, name := range sortedKeys(gates) {
		list = append(list, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return strings.Join(list, ",")
}
