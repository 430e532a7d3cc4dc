package inventory

import (
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// checkOld finds what a version that has long ended cannot do yet.
func (f *file) checkOld(m catalog.Minor) []finding {
	k := &f.Kubernetes
	version := k.Version.MinorString()
	var out []finding
	refuse := func(wrong bool, path, format string, args ...any) {
		if wrong {
			out = append(out, finding{path: path, message: fmt.Sprintf(format, args...)})
		}
	}
	refuse(f.Runtime == Containerd && m.RuntimeClassAPI() == "", "runtime",
		"Kubernetes %s cannot choose the runtime that gives pods their cards, as containerd needs it to (RuntimeClass, since 1.14): write docker", version)
	refuse(f.Network == Flannel && !m.ReadsCNILists(), "network",
		"the kubelet of Kubernetes %s does not read what flannel writes (CNI lists, since 1.7): write weave", version)
	refuse(f.Network == Calico && m.Number < calicoSince, "network",
		"the objects of Calico %s are those of Kubernetes 1.%d and newer: write weave or flannel", catalog.Calico.Version, calicoSince)
	refuse(f.Registry != "" && !m.HasImageRepository(), "images.registry", "kubeadm %s takes no other registry (since 1.8)", version)
	refuse(k.ControlPlaneEndpoint != "" && !m.HasControlPlaneEndpoint(), "kubernetes.controlPlaneEndpoint", "kubeadm %s does not know it (since 1.11)", version)
	for section, settings := range map[string]map[string]any{"kubeletConfiguration": k.KubeletConfiguration, "kubeProxyConfiguration": k.KubeProxyConfiguration} {
		refuse(len(settings) > 0 && !m.HasKubeletConfig(), "kubernetes."+section, "Kubernetes %s is configured by flags (by this since 1.11)", version)
	}
	refuse(len(k.IgnorePreflightErrors) > 0 && !m.HasIgnorePreflightErrors() && !slices.Equal(k.IgnorePreflightErrors, []string{"all"}),
		"kubernetes.ignorePreflightErrors", "kubeadm %s can only leave out all of its checks (single ones since 1.9): write [all]", version)
	return out
}

// calicoSince is the minor whose API has all kinds of Calico's manifest: policy/v1.
const calicoSince = 21
