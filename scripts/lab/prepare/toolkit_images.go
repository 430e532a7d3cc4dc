package prepare

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/scripts/lab/internet/store"
	"kgpu.dev/kgpu/scripts/lab/src"
)

// devicePluginName is what kgpu asks for. The Go proxy serves no 0.20.0: the newest that it has is under this name.
const devicePluginName = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"

// givesDevices is the environment by which an image asks the toolkit for all cards.
var givesDevices = []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}

// devicePluginImage has the programs where the module's own Dockerfile puts them.
func (p *preparer) devicePluginImage(tools item) item {
	return item{
		name: "image " + devicePluginName, path: filepath.Join(p.Registry(), "sets", "k8s-device-plugin"),
		inputs: []any{p.buildWithC(devicePlugin).inputs, tools.inputs}, files: append([]string{"toolkit_images.go", "layer.go"}, tools.files...),
		make: func(ctx context.Context) error {
			tree := filepath.Join(p.work(), "image")
			if err := emptyDir(tree); err != nil {
				return err
			}
			bin := p.Bin(devicePlugin.name, devicePlugin.version)
			commands, err := os.ReadDir(bin)
			if err != nil {
				return err
			}
			for _, c := range commands {
				if err := copyFile(filepath.Join(bin, c.Name()), filepath.Join(tree, "usr/bin", c.Name()), 0o755); err != nil {
					return err
				}
			}
			module, err := download(ctx, devicePlugin.module+"@v"+devicePlugin.version)
			if err != nil {
				return err
			}
			if err := copyFile(filepath.Join(module, "LICENSE"), filepath.Join(tree, "licenses/LICENSE"), 0o644); err != nil {
				return err
			}
			config := v1.Config{User: "0:0", Entrypoint: []string{"nvidia-device-plugin"}}
			return p.putImage(devicePluginName, config, append([]string{"NVIDIA_DISABLE_REQUIRE=true"}, givesDevices...), tools.path, tree)
		},
	}
}

// cudaPackages make the root of CUDA's images. The originals' is Ubuntu's; none brings nvidia-smi, which the toolkit puts in.
var cudaPackages = []string{"base-files", "bash", "coreutils", "dash", "findutils", "grep", "libc-bin", "sed"}

func (p *preparer) cudaRoot() item {
	dir := filepath.Join(p.Cache, "images", "cuda")
	return item{
		name: "image base with bash", path: dir,
		inputs: []any{cudaPackages}, files: []string{"files/settle-cuda-root.sh"},
		make: func(ctx context.Context) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if err := p.debootstrap(ctx, "extract", dir, cudaPackages); err != nil {
				return err
			}
			return p.script(ctx, "files/settle-cuda-root.sh", dir)
		},
	}
}

// sampleImages are those that kgpu proves cards with. They have the lab's vectorAdd where the originals have CUDA's.
func (p *preparer) sampleImages(root item) item {
	const source = "vectoradd/vectoradd.c"
	text, err := fs.ReadFile(src.FS, source)
	if err != nil {
		panic(err) // it is embedded
	}
	return item{
		name: "images of vectorAdd", path: filepath.Join(p.Registry(), "sets", "samples"),
		inputs: []any{catalog.Samples(), string(text), root.inputs}, files: append([]string{"toolkit_images.go", "layer.go"}, root.files...),
		make: func(ctx context.Context) error {
			if err := p.compiler(ctx); err != nil {
				return err
			}
			code, program := filepath.Join(p.work(), filepath.Base(source)), filepath.Join(p.work(), "vectorAdd")
			if err := writeFile(code, text, 0o644); err != nil {
				return err
			}
			if err := (command{}).run(ctx, "gcc", "-std=gnu11", "-O2", "-s", "-Wall", "-o", program, code); err != nil {
				return err
			}
			for _, s := range catalog.Samples() {
				tree := filepath.Join(p.work(), "image")
				if err := emptyDir(tree); err != nil {
					return err
				}
				if err := copyFile(program, filepath.Join(tree, s.Program), 0o755); err != nil {
					return err
				}
				if err := p.putImage(s.Image, v1.Config{Entrypoint: []string{s.Program}}, givesDevices, root.path, tree); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// putImage stores an image of one layer for each root.
func (p *preparer) putImage(name string, config v1.Config, env []string, roots ...string) error {
	image, err := p.packImage(config, env, roots...)
	if err != nil {
		return err
	}
	return store.Store{Dir: p.Registry()}.Put(name, image)
}

// packImage makes an image whose layers are files below work.
func (p *preparer) packImage(config v1.Config, env []string, roots ...string) (v1.Image, error) {
	var layers []v1.Layer
	for n, root := range roots {
		l, err := packLayer(root, filepath.Join(p.work(), fmt.Sprintf("layer-%d.tar", n)))
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	image, err := assemble(config, layers)
	if err != nil {
		return nil, err
	}
	return withEnvironment(image, env)
}

// withEnvironment adds to the search path that every image of the lab has.
func withEnvironment(image v1.Image, env []string) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := file.Config.DeepCopy()
	config.Env = append(config.Env, env...)
	return mutate.Config(image, *config)
}
