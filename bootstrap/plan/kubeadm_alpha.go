package plan

import (
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// The files of kubeadm 1.6 to 1.12. Sources: cmd/kubeadm/app/apis/kubeadm/v1alpha1 of k8s.io/kubernetes 1.6.13, 1.7.5, 1.8.15,
// 1.9.11 and 1.10.13, v1alpha2 of 1.11.10, v1alpha3 of 1.12.10; cmd/kubeadm/app/cmd/{init,join}.go of 1.6.13 and 1.7.5, which
// read the same kinds by --config.

// masterConfiguration is what became InitConfiguration and ClusterConfiguration with 1.12.
func (b *builder) masterConfiguration() object {
	k := b.Inventory.Kubernetes
	api := advertised(b.first)
	if k.ControlPlaneEndpoint != "" {
		api["controlPlaneEndpoint"] = k.ControlPlaneEndpoint
	}
	master := object{
		"apiVersion": b.kubeadmAPI(), "kind": "MasterConfiguration",
		"api":               api,
		"kubernetesVersion": "v" + k.Version.String(),
		"networking":        b.networking(),
	}
	if b.Inventory.Registry != "" {
		master["imageRepository"] = b.Inventory.Registry
	}
	b.flatComponents(master)
	if b.Minor.Has(catalog.KubeletConfig) {
		master["clusterName"] = b.Inventory.Cluster
		master["bootstrapTokens"] = initTokens()
		master["nodeRegistration"] = b.nodeRegistration(b.first)
		master["kubeletConfiguration"] = object{"baseConfig": untyped(b.kubeletConfiguration())}
		if proxy := untyped(b.proxyConfiguration()); len(proxy) > 0 {
			master["kubeProxy"] = object{"config": proxy}
		}
		return master
	}
	// The token that kubeadm always makes; this one is of no use to anybody and short-lived.
	master["tokenTTL"] = "1m0s"
	if !b.Minor.Has(catalog.DiscoveryHash) {
		master["tokenTTL"] = int(time.Minute) // a time.Duration, which JSON has as nanoseconds
	}
	if b.Minor.Has(catalog.KubeadmNodeName) {
		master["nodeName"] = b.first.node
	}
	return master
}

// untyped is a configuration as a part of another one.
func untyped(config object) object {
	delete(config, "apiVersion")
	delete(config, "kind")
	return config
}

// flatComponents writes the flags of the control plane's programs as the files before v1beta1 have them.
func (b *builder) flatComponents(into object) {
	into["apiServerCertSANs"] = b.certSANs()
	if gates := formatGates(b.Inventory.Kubernetes.FeatureGates); gates != "" {
		for _, component := range []string{"apiServer", "controllerManager", "scheduler"} {
			into[component+"ExtraArgs"] = object{"feature-gates": gates}
		}
	}
}

// nodeConfiguration is the file that kubeadm join reads before v1beta1; the kind has its later name since 1.12.
func (b *builder) nodeConfiguration(h *host, token, caHash string) object {
	node := object{
		"apiVersion": b.kubeadmAPI(), "kind": "NodeConfiguration",
		"token":                    token,
		"discoveryTokenAPIServers": []any{b.Endpoint()},
	}
	if b.Minor.KubeadmAPI == "v1alpha3" {
		node["kind"] = "JoinConfiguration"
	}
	if b.Minor.Has(catalog.DiscoveryHash) {
		node["discoveryTokenCACertHashes"] = []any{caHash}
	}
	switch {
	case b.Minor.Has(catalog.KubeletConfig):
		node["nodeRegistration"] = b.nodeRegistration(h)
	case b.Minor.Has(catalog.KubeadmNodeName):
		node["nodeName"] = h.node
	}
	return node
}

// kubeadmFlags are those that no file can say. Source: ValidateMixedArguments in cmd/kubeadm/app/apis/kubeadm/validation, which
// lets these be beside --config.
func (b *builder) kubeadmFlags() []string {
	ignore := b.Inventory.Kubernetes.IgnorePreflightErrors
	switch {
	case len(ignore) == 0 || b.Minor.Has(catalog.IgnoreInFile):
		return nil
	case b.Minor.Has(catalog.IgnorePreflightErrors):
		return []string{"--ignore-preflight-errors=" + strings.Join(ignore, ",")}
	}
	return []string{"--skip-preflight-checks"} // the inventory has nothing but all here
}

// withFlags adds kubeadm's flags to a step's values, if there are any.
func (b *builder) withFlags(values map[string]string) map[string]string {
	if flags := b.kubeadmFlags(); len(flags) > 0 {
		values["flags"] = lines(flags...)
	}
	return values
}
