package prepare

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

var kubernetesCommands = []string{
	"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// kubernetes builds the commands of a release. k8s.io/kubernetes names its staging modules by v0.0.0 and replaces them by folders
// that are not in its module: the wrapper replaces them by the published modules of the same release, v0.minor.patch. The tag
// providerless is that of releases before 1.30 for a build without the cloud providers, most of what there is to compile.
func (p *preparer) kubernetes(r release) item {
	dir := p.Bin("kubernetes", r.version)
	return item{
		name: "kubernetes " + r.version, path: dir,
		inputs: []any{r.version, kubernetesCommands, runtime.Version()},
		make: func(ctx context.Context) error {
			wrapper, err := p.kubernetesWrapper(ctx, r)
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

func (p *preparer) kubernetesWrapper(ctx context.Context, r release) (string, error) {
	const module = "k8s.io/kubernetes"
	from, err := download(ctx, module+"@v"+r.version)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return "", err
	}
	theirs, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return "", err
	}
	ours := new(modfile.File)
	staging := "v0." + strings.TrimPrefix(r.version, "1.")
	add := func(err2 error) {
		if err == nil {
			err = err2
		}
	}
	add(ours.AddModuleStmt("lab.invalid/kubernetes"))
	add(ours.AddGoStmt(theirs.Go.Version))
	add(ours.AddRequire(module, "v"+r.version))
	for _, req := range theirs.Require {
		if req.Mod.Version == "v0.0.0" {
			add(ours.AddReplace(req.Mod.Path, "", req.Mod.Path, staging))
			continue
		}
		add(ours.AddRequire(req.Mod.Path, req.Mod.Version))
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(p.work(), "build", "kubernetes-"+r.version)
	if err := emptyDir(dir); err != nil {
		return "", err
	}
	if err := copyFile(filepath.Join(from, "go.sum"), filepath.Join(dir, "go.sum"), 0o644); err != nil {
		return "", err
	}
	formatted, err := ours.Format()
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "go.mod"), formatted, 0o644)
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
