package prepare

import (
	"bytes"
	"context"
	"runtime"
)

var kubernetesCommands = []string{
	"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// kubernetes builds the commands of a release. The tag
// providerless is that of releases before 1.30 for a build without the cloud providers, most of what there is to compile.
func (p *preparer) kubernetes(r release) item {
	dir := p.Bin("kubernetes", r.version)
	return item{
		name: "kubernetes " + r.version, path: dir,
		inputs: []any{r.version, kubernetesCommands, runtime.Version()},
		make: func(ctx context.Context) error {
			wrapper, err := p.wrapper(ctx, "kubernetes", "k8s.io/kubernetes", r.version)
			if err != nil {
				return err
			}
			var packages []string
			for _, c := range kubernetesCommands {
				packages = append(packages, "k8s.io/kubernetes/cmd/"+c)
			}
			return p.compile(ctx, wrapper, kubernetesVersionFlags(r), dir+"/", append([]string{"-tags", "providerless"}, packages...)...)
		},
	}
}

func kubernetesVersionFlags(r release) string {
	var flags bytes.Buffer
	for _, in := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, set := range []string{
			"gitVersion=v" + r.version, "gitMajor=1", "gitMinor=" + r.minor(), "gitTreeState=clean", "buildDate=2026-01-01T00:00:00Z",
		} {
			flags.WriteString(" -X " + in + "." + set)
		}
	}
	return flags.String()
}
