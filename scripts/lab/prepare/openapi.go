package prepare

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// xToolsForGenerator replaces the generator's own golang.org/x/tools, which today's Go no longer compiles.
const xToolsForGenerator = "v0.41.0"

// openAPITable is the generated file, relative to the module.
const openAPITable = "pkg/generated/openapi/zz_generated.openapi.go"

// complete has the wrapper take Kubernetes from a copy of its module to which the OpenAPI table is added: the release's authors
// generate that file when they build, and so does this, with the release's own generator.
func (p *preparer) complete(ctx context.Context, wrapper string, r release) error {
	module, err := download(ctx, kubernetesModule+"@v"+r.version)
	if err != nil {
		return err
	}
	table, err := p.generatedTable(ctx, r)
	if err != nil {
		return err
	}
	source := filepath.Join(p.work(), "build", "kubernetes-source")
	if err := os.RemoveAll(source); err != nil {
		return err
	}
	if err := (command{}).run(ctx, "cp", "-r", "--no-preserve=mode", module, source); err != nil {
		return err
	}
	if err := copyFile(table, filepath.Join(source, openAPITable), 0o644); err != nil {
		return err
	}
	return command{dir: wrapper, env: p.goEnv()}.run(ctx, "go", "mod", "edit", "-replace", kubernetesModule+"="+source)
}

// generatedTable makes the table in a vendor folder of what kube-apiserver is made of, which is what the generator can read.
func (p *preparer) generatedTable(ctx context.Context, r release) (string, error) {
	wrapper, err := p.wrapper(ctx, "kube-apiserver", kubernetesModule, r.version)
	if err != nil {
		return "", err
	}
	if err := p.vendor(ctx, wrapper); err != nil {
		return "", err
	}
	return filepath.Join(wrapper, "vendor", kubernetesModule, openAPITable), p.generateOpenAPI(ctx, wrapper)
}

// vendor copies the packages that kube-apiserver is made of into the wrapper's vendor folder.
func (p *preparer) vendor(ctx context.Context, wrapper string) error {
	imports := fmt.Sprintf("//go:build vendor\n\npackage vendor\n\nimport _ %q\n", kubernetesModule+"/cmd/kube-apiserver")
	if err := os.WriteFile(filepath.Join(wrapper, "vendor.go"), []byte(imports), 0o644); err != nil {
		return err
	}
	// go mod vendor wants a complete go.mod and go.sum; listing with -mod=mod completes them. The flag -e is for the import of a
	// program, which the list calls an error.
	golang := command{dir: wrapper, env: p.goEnv()}
	if _, err := golang.output(ctx, "nice", "-n", "10", "go", "list", "-e", "-deps", "-tags", "vendor", "."); err != nil {
		return err
	}
	return golang.run(ctx, "nice", "-n", "10", "go", "mod", "vendor")
}

func (p *preparer) generateOpenAPI(ctx context.Context, wrapper string) error {
	generator, err := p.openAPIGenerator(ctx, wrapper)
	if err != nil {
		return err
	}
	vendored := filepath.Join(wrapper, "vendor")
	inputs, err := openAPIPackages(vendored)
	if err != nil {
		return err
	}
	// The generator knows no modules: it finds the packages in a GOPATH whose src is the vendor folder.
	gopath := filepath.Join(p.work(), "gopath")
	if err := emptyDir(gopath); err != nil {
		return err
	}
	if err := os.Symlink(vendored, filepath.Join(gopath, "src")); err != nil {
		return err
	}
	inGopath := command{dir: filepath.Join(gopath, "src"), env: []string{"GO111MODULE=off", "GOPATH=" + gopath, "GOFLAGS=", "GODEBUG=gotypesalias=0"}}
	return inGopath.run(ctx, "nice", "-n", "10", generator, "--logtostderr", "-i", strings.Join(inputs, ","),
		"-p", path.Join(kubernetesModule, path.Dir(openAPITable)), "-O", strings.TrimSuffix(path.Base(openAPITable), ".go"), "-h", os.DevNull,
		"-r", filepath.Join(p.work(), "violations"), "--output-base", vendored)
}

// openAPIGenerator builds openapi-gen of the version that the wrapper requires.
func (p *preparer) openAPIGenerator(ctx context.Context, wrapper string) (string, error) {
	const module = "k8s.io/kube-openapi"
	version, err := command{dir: wrapper, env: p.goEnv()}.output(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(p.work(), "build", "openapi-gen")
	if err := emptyDir(dir); err != nil {
		return "", err
	}
	text := fmt.Sprintf("module lab.invalid/program\n\ngo 1.26\n\nrequire (\n\t%s %s\n\tgolang.org/x/tools %s\n)\n",
		module, bytes.TrimSpace(version), xToolsForGenerator)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		return "", err
	}
	generator := filepath.Join(dir, "bin", "openapi-gen")
	return generator, p.compile(ctx, dir, "", generator, module+"/cmd/openapi-gen")
}

// openAPIPackages are the packages below root that ask for an OpenAPI definition of their types.
func openAPIPackages(root string) ([]string, error) {
	var packages []string
	err := filepath.WalkDir(filepath.Join(root, "k8s.io"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("+k8s:openapi-gen=")) {
			return err
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		// The generator's own code names the tag, too.
		if !strings.HasPrefix(name, "k8s.io/kube-openapi/") {
			packages = append(packages, name)
		}
		return err
	})
	slices.Sort(packages)
	return slices.Compact(packages), err
}
