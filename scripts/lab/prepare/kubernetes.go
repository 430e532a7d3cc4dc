package prepare

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"slices"
)

var kubernetesCommands = []string{
	"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// kubernetes builds the commands of a release. The tag
// providerless is that of releases before 1.30 for a build without the cloud providers, most of what there is to compile.
func (p *preparer) kubernetes(r release) item {
	dir, commands := p.Bin("kubernetes", r.version), kubernetesCommands
	if r.generated {
		commands = slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return c == "kube-apiserver" })
	}
	return item{
		name: "kubernetes " + r.version, path: dir,
		inputs: []any{r.version, commands, runtime.Version()},
		make: func(ctx context.Context) error {
			wrapper, err := p.wrapper(ctx, "kubernetes", "k8s.io/kubernetes", r.version)
			if err != nil {
				return err
			}
			var packages []string
			for _, c := range commands {
				packages = append(packages, "k8s.io/kubernetes/cmd/"+c)
			}
			return p.compile(ctx, wrapper, kubernetesVersionFlags(r), dir+"/", append([]string{"-tags", "providerless"}, packages...)...)
		},
	}
}

// commandFile is where the release's command lies once it is built.
func (p *preparer) commandFile(r release, name string) string {
	if r.generated && name == "kube-apiserver" {
		return filepath.Join(p.Bin(name, r.version), name)
	}
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
