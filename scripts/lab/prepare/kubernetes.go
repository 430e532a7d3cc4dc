package prepare

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
)

const kubernetesModule = "k8s.io/kubernetes"

var kubernetesCommands = []string{
	"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// kubernetes builds the commands of a release. The tag
// providerless is that of releases before 1.30 for a build without the cloud providers, most of what there is to compile.
func (p *preparer) kubernetes(r release) item {
	dir := p.Bin("kubernetes", r.version)
	i := item{
		name: "kubernetes " + r.version, path: dir,
		inputs: []any{r.version, kubernetesCommands, runtime.Version()},
		make: func(ctx context.Context) error {
			wrapper, err := p.wrapper(ctx, "kubernetes", kubernetesModule, r.version)
			if err != nil {
				return err
			}
			if r.generated {
				if err := p.complete(ctx, wrapper, r); err != nil {
					return err
				}
			}
			args := []string{"-tags", "providerless"}
			for _, c := range kubernetesCommands {
				args = append(args, kubernetesModule+"/cmd/"+c)
			}
			return p.compile(ctx, wrapper, kubernetesVersionFlags(r), dir+"/", args...)
		},
	}
	if r.generated {
		i.inputs, i.files = append(i.inputs, xToolsForGenerator), []string{"openapi.go"}
	}
	return i
}

// kubernetesCommand is where the release's command lies once it is built.
func (p *preparer) kubernetesCommand(r release, name string) string {
	return filepath.Join(p.Bin("kubernetes", r.version), name)
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
