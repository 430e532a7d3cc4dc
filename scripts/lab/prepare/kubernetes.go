package prepare

import (
	"bytes"
	"context"
	"fmt"
	"os"
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
	if r.of != "" {
		return p.stampKubernetes(r)
	}
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

// stampKubernetes makes the commands of a release out of those of the one that it is of: the linker wrote the version into them
// as text, which another of the same length takes the place of.
func (p *preparer) stampKubernetes(r release) item {
	built := r
	built.version, built.of = r.of, ""
	dir, from := p.Bin("kubernetes", r.version), p.kubernetes(built)
	return item{
		name: "kubernetes " + r.version, path: dir, inputs: []any{from.inputs, r.version},
		make: func(context.Context) error {
			if len(r.version) != len(r.of) {
				return fmt.Errorf("%s is not as long as %s", r.version, r.of)
			}
			if err := emptyDir(dir); err != nil {
				return err
			}
			for _, name := range kubernetesCommands {
				program, err := os.ReadFile(p.kubernetesCommand(built, name))
				if err != nil {
					return err
				}
				program = bytes.ReplaceAll(program, []byte("v"+r.of), []byte("v"+r.version))
				if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
