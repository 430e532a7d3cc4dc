package plan

import (
	"fmt"
	"slices"
	"strings"
)

// KubernetesPackages are pinned to the cluster's version and held.
var KubernetesPackages = []string{"kubelet", "kubeadm", "kubectl"}

func (b *builder) packages(h *host) {
	version := b.inv.Kubernetes.Version.String()
	var missing, reasons []string
	for _, name := range KubernetesPackages {
		p, ok := h.facts.Packages[name]
		switch {
		case !ok:
			missing = append(missing, name)
		case !strings.HasPrefix(p.Version, version+"-"):
			reasons = append(reasons, fmt.Sprintf("%s is %s", name, p.Version))
		case !p.Held:
			reasons = append(reasons, name+" is not held")
		}
	}
	if len(missing) > 0 {
		reasons = append(reasons, "not installed: "+strings.Join(missing, ", "))
	}
	files := b.kubeletFiles(h)
	reasons = slices.Concat(reasons, changed(h.facts, files), h.outdated("kubelet.service"))
	b.unless(h, reasons, "Kubernetes "+version+" is installed", Step{
		Ref: Ref{ID: "kube/packages"}, Title: "install kubelet, kubeadm and kubectl " + version, Script: "kube-packages",
		Input: Input{Values: map[string]string{"version": version}, Files: files}, Retry: Transient, Timeout: long,
	})
}
