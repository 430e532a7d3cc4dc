package prepare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// image is one program in a container image, under one or more full names.
type image struct {
	names   []string
	program string   // file on this machine
	at      string   // where it lies in the image, relative to the root
	beside  []string // files on this machine that lie in the same folder
	tools   bool     // on top of a shell, iptables and nft
	config  v1.Config
}

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lessGarbage has a program in Go collect garbage less often, within a limit: many hosts share few processors.
var lessGarbage = []string{"GOGC=400", "GOMEMLIMIT=512MiB"}

// flannelPluginImage is what flannel's own manifest of this version names.
const flannelPluginImage = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3"

func (p *preparer) images(ctx context.Context) error {
	tools := p.toolsTree()
	if err := p.do(ctx, tools); err != nil {
		return err
	}
	for _, r := range p.releases {
		inputs := []any{p.kubernetes(r).inputs, p.build(etcd(r.etcd)).inputs, p.build(coredns(r.coredns)).inputs}
		for _, g := range etcdTools(r.etcd) {
			inputs = append(inputs, p.build(g).inputs)
		}
		if err := p.do(ctx, p.imageSet("kubernetes "+r.version, p.kubernetesImages(r), tools, inputs)); err != nil {
			return err
		}
	}
	var others []any
	for _, g := range []program{pause, flanneld, flannelPlugin, netbox} {
		others = append(others, p.build(g).inputs)
	}
	return p.do(ctx, p.imageSet("network and workload", p.otherImages(), tools, others))
}

func (p *preparer) kubernetesImages(r release) []image {
	var all []image
	for _, c := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		all = append(all, image{
			names: []string{"registry.k8s.io/" + c + ":v" + r.version}, program: p.kubernetesCommand(r, c), at: "usr/local/bin/" + c,
			tools: c == "kube-proxy", config: v1.Config{Env: lessGarbage},
		})
	}
	var tools []string
	for _, g := range etcdTools(r.etcd) {
		tools = append(tools, p.built(g))
	}
	return append(all,
		image{
			names:   []string{"registry.k8s.io/etcd:" + r.etcdTag},
			program: p.built(etcd(r.etcd)), at: "usr/local/bin/etcd", beside: tools, config: v1.Config{Env: lessGarbage},
		},
		image{
			names:   []string{"registry.k8s.io/coredns/coredns:" + r.corednsTag},
			program: p.built(coredns(r.coredns)), at: "coredns",
			config: v1.Config{Entrypoint: []string{"/coredns"}, Env: lessGarbage},
		})
}

func (p *preparer) otherImages() []image {
	sandbox := image{
		program: p.built(pause), at: "pause",
		config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
	}
	for _, t := range pauseTags {
		sandbox.names = append(sandbox.names, "registry.k8s.io/pause:"+t)
	}
	return []image{
		sandbox,
		{
			names:   []string{"ghcr.io/flannel-io/flannel:v" + flanneld.version},
			program: p.built(flanneld), at: "opt/bin/flanneld",
			tools: true, config: v1.Config{Entrypoint: []string{"/opt/bin/flanneld"}},
		},
		{
			names:   []string{flannelPluginImage},
			program: p.built(flannelPlugin), at: "flannel",
			tools: true, config: v1.Config{Cmd: []string{"/bin/sh"}},
		},
		{
			names:   []string{"registry.k8s.io/lab/netbox:1"},
			program: p.built(netbox), at: "netbox",
			config: v1.Config{Entrypoint: []string{"/netbox"}},
		},
		{
			names:   []string{"docker.io/library/busybox:1.37", "docker.io/library/busybox:latest"},
			program: p.built(netbox), at: "usr/local/bin/netbox",
			tools: true, config: v1.Config{Cmd: []string{"sh"}},
		},
	}
}

func (p *preparer) imageSet(name string, set []image, tools item, inputs []any) item {
	return item{
		name: "images " + name, path: filepath.Join(p.Registry(), "sets", name),
		inputs: []any{inputs, tools.inputs, fmt.Sprintf("%+v", set)}, files: append([]string{"images.go", "layer.go"}, tools.files...),
		make: func(context.Context) error {
			for _, i := range set {
				if err := p.makeImage(i, tools.path); err != nil {
					return fmt.Errorf("%s: %w", i.names[0], err)
				}
			}
			return nil
		},
	}
}

func (p *preparer) makeImage(i image, tools string) error {
	tree := filepath.Join(p.work(), "image")
	if err := emptyDir(tree); err != nil {
		return err
	}
	var roots []string
	if i.tools {
		roots = append(roots, tools)
	} else {
		if err := minimalRoot(tree); err != nil {
			return err
		}
	}
	if err := copyFile(i.program, filepath.Join(tree, i.at), 0o755); err != nil {
		return err
	}
	for _, file := range i.beside {
		if err := copyFile(file, filepath.Join(tree, filepath.Dir(i.at), filepath.Base(file)), 0o755); err != nil {
			return err
		}
	}
	var layers []v1.Layer
	for n, root := range append(roots, tree) {
		l, err := packLayer(root, filepath.Join(p.work(), fmt.Sprintf("layer-%d.tar", n)))
		if err != nil {
			return err
		}
		layers = append(layers, l)
	}
	packed, err := assemble(i.config, layers)
	if err != nil {
		return err
	}
	for _, n := range i.names {
		if err := (store.Store{Dir: p.Registry()}).Put(n, packed); err != nil {
			return err
		}
	}
	return nil
}

func assemble(config v1.Config, layers []v1.Layer) (v1.Image, error) {
	config.Env = append([]string{searchPath}, config.Env...)
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	with, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		return nil, err
	}
	file, err := with.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config, file.Created = "amd64", "linux", config, v1.Time{Time: packed}
	return mutate.ConfigFile(with, file)
}

// minimalRoot is what a static program finds in a distroless image: root's name and a folder for temporary files.
func minimalRoot(tree string) error {
	if err := writeFile(filepath.Join(tree, "etc/passwd"), []byte("root:x:0:0:root:/:/sbin/nologin\n"), 0o644); err != nil {
		return err
	}
	tmp := filepath.Join(tree, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	return os.Chmod(tmp, 0o777|os.ModeSticky)
}

// toolPackages make the root of the images that write packet filter rules.
var toolPackages = []string{"busybox", "iptables", "nftables", "conntrack", "ipset", "kmod", "ca-certificates", "netbase"}

func (p *preparer) toolsTree() item {
	dir := filepath.Join(p.Cache, "images", "tools")
	return item{
		name: "image base with iptables and nft", path: dir,
		inputs: []any{toolPackages}, files: []string{"files/shrink-tools.sh"},
		make: func(ctx context.Context) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if err := p.debootstrap(ctx, "extract", dir, toolPackages); err != nil {
				return err
			}
			return p.script(ctx, "files/shrink-tools.sh", dir)
		},
	}
}
