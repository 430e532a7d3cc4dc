package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
)

func (b *builder) packages(h *host) {
	if b.Lags(h.Machine) {
		b.kubeadmPackage(h)
		return
	}
	version := b.VersionOf(h.Machine)
	var missing, reasons []string
	for _, name := range catalog.KubernetesPackages {
		p, ok := h.Facts.Packages[name]
		switch {
		case !ok:
			missing = append(missing, name)
		case !b.Keeps(h.Machine) && !strings.HasPrefix(p.Version, version.String()+"-"):
			reasons = append(reasons, fmt.Sprintf("%s is %s", name, p.Version))
		case !p.Held:
			reasons = append(reasons, name+" is not held")
		}
	}
	if len(missing) > 0 {
		reasons = append(reasons, "not installed: "+strings.Join(missing, ", "))
	}
	files := b.kubeletFiles(h)
	reasons = slices.Concat(reasons, changed(h.Facts, files), h.outdated("kubelet.service"))
	values := map[string]string{"version": version.String()}
	if b.Keeps(h.Machine) {
		values["missing"] = lines(missing...)
	}
	b.unless(h, reasons, "Kubernetes "+version.String()+" is installed", graph.Step{
		Ref: graph.Ref{ID: "kube/packages"}, Title: "install kubelet, kubeadm and kubectl " + version.String(),
		Input: graph.Input{Values: values, Files: files},
	})
}
