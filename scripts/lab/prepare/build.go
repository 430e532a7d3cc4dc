package prepare

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"kgpu.dev/kgpu/scripts/lab/src"
)

// program is a set of commands compiled from one Go module, or from one of the lab's own sources.
type program struct {
	name, version string
	module        string   // its go.mod path; empty for a source that needs the standard library only
	packages      []string // import paths; empty: the source src/<name>
	ldflags       string
}

// The programs that all releases share; those of version 1 are the lab's own.
var (
	flanneld      = program{name: "flanneld", version: "0.28.9", module: "github.com/flannel-io/flannel"}
	flannelPlugin = program{name: "flannelcni", version: "1"}
	netbox        = program{name: "netbox", version: "1"}
	pause         = program{name: "pause", version: "1"}
	runcWrapper   = program{name: "runc", version: "1"}
	plugins       = program{
		name: "cni-plugins", version: "1.9.1", module: "github.com/containernetworking/plugins",
		packages: []string{"github.com/containernetworking/plugins/plugins/..."},
	}
	containerd = program{
		name: "containerd", version: "2.3.7", module: "github.com/containerd/containerd/v2",
		packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
		},
		ldflags: "-X github.com/containerd/containerd/v2/version.Version=2.3.7",
	}
	criDockerd = program{
		name: "cri-dockerd", version: "0.4.4", module: "github.com/Mirantis/cri-dockerd", packages: []string{"github.com/Mirantis/cri-dockerd"},
		ldflags: "-X github.com/Mirantis/cri-dockerd/cmd/version.Version=0.4.4",
	}
)

func (p *preparer) buildAll(ctx context.Context) error {
	for _, r := range p.releases {
		if err := p.do(ctx, p.kubernetes(r)); err != nil {
			return err
		}
		for _, g := range append(etcdTools(r.etcd), etcd(r.etcd)) {
			if err := p.do(ctx, p.build(g)); err != nil {
				return err
			}
		}
		if err := p.do(ctx, p.build(coredns(r.coredns))); err != nil {
			return err
		}
	}
	programs := []program{flanneld, plugins, flannelPlugin, netbox, pause, runcWrapper, containerd}
	if p.docker {
		programs = append(programs, criDockerd)
	}
	for _, g := range programs {
		if err := p.do(ctx, p.build(g)); err != nil {
			return err
		}
	}
	return nil
}

func etcd(version string) program {
	return program{name: "etcd", version: version, module: "go.etcd.io/etcd/server/v3", packages: []string{"go.etcd.io/etcd/server/v3"}}
}

// etcdTools are the programs that lie beside etcd in its image; etcdutl came with 3.5.
func etcdTools(version string) []program {
	return []program{
		{name: "etcdctl", version: version, module: "go.etcd.io/etcd/etcdctl/v3", packages: []string{"go.etcd.io/etcd/etcdctl/v3"}},
		{name: "etcdutl", version: version, module: "go.etcd.io/etcd/etcdutl/v3", packages: []string{"go.etcd.io/etcd/etcdutl/v3"}},
	}
}

func coredns(version string) program {
	return program{name: "coredns", version: version, module: "github.com/coredns/coredns"}
}

// built is the file of a single command.
func (p *preparer) built(g program) string { return filepath.Join(p.Bin(g.name, g.version), g.name) }

func (p *preparer) build(g program) item {
	own := ""
	if len(g.packages) == 0 {
		text, err := fs.ReadFile(src.FS, path.Join(g.name, "main.go"))
		if err != nil {
			panic(err) // the folder is embedded, so only a wrong name in the table comes here
		}
		own = string(text)
	}
	dir := p.Bin(g.name, g.version)
	return item{
		name: g.name + " " + g.version, path: dir,
		inputs: []any{g.name, g.version, g.module, g.packages, g.ldflags, own, runtime.Version()},
		make: func(ctx context.Context) error {
			wrapper, err := p.wrapper(ctx, g.name, g.module, g.version)
			if err != nil {
				return err
			}
			packages := g.packages
			if own != "" {
				if err := os.WriteFile(filepath.Join(wrapper, "main.go"), []byte(own), 0o644); err != nil {
					return err
				}
				packages = []string{"main.go"}
			}
			out := dir + "/"
			if len(packages) == 1 && path.Base(packages[0]) != "..." {
				out += g.name
			}
			return p.compile(ctx, wrapper, g.ldflags, out, packages...)
		},
	}
}

// compile runs go build for the packages, which flags may precede.
func (p *preparer) compile(ctx context.Context, dir, ldflags, out string, packages ...string) error {
	if err := emptyDir(filepath.Dir(out)); err != nil {
		return err
	}
	args := append([]string{"-n", "10", "go", "build", "-trimpath", "-ldflags", "-s -w " + ldflags, "-o", out}, packages...)
	return command{dir: dir, env: p.goEnv()}.run(ctx, "nice", args...)
}

// goEnv makes static programs with a build cache of the lab's own. Nobody debugs them, and a compiler that collects no garbage
// before it has 2 GiB of it takes a quarter less of the processor.
func (p *preparer) goEnv() []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOWORK=off", "GOCACHE=" + filepath.Join(p.work(), "gocache"),
		"GOFLAGS=-mod=mod -gcflags=all=-dwarf=false", "GOGC=off", "GOMEMLIMIT=2GiB",
	}
}
