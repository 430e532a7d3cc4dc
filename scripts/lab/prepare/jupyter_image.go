package prepare

import (
	"context"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// jupyterNames are the images with Jupyter that kgpu's notebook and the examples name, all of them served as one. See REAL.md.
var jupyterNames = []string{"docker.io/tensorflow/tensorflow:2.17.0-gpu-jupyter"}

// jupyterPackages are without jupyter-notebook: Debian 13 has its version 6, which with that release's jupyter_client answers a
// kernel's first connection only when its own limit of a minute has passed. The pages are JupyterLab's, see jupyterPages.
var jupyterPackages = append([]string{
	"jupyter-core", "jupyter-server", "python3-async-lru", "python3-ipykernel", "python3-jupyterlab-server", "python3-notebook-shim", "python3-numpy",
}, cudaPackages...)

// jupyterPages brings JupyterLab's pages and server extension without what builds them: Debian's package depends on hundreds
// for that.
const jupyterPages = `set -e
cd "$1/tmp"
APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get download jupyterlab
dpkg-deb --fsys-tarfile jupyterlab_*.deb | tar -x -C "$1" --exclude=./usr/share/nodejs --exclude='*.map' --exclude='*/tests/*'
rm jupyterlab_*.deb`

// jupyter makes the image whose kernels look for a card.
func (p *preparer) jupyter(ctx context.Context) error {
	root := p.jupyterRoot()
	if err := p.do(ctx, root); err != nil {
		return err
	}
	return p.do(ctx, p.jupyterImage(root))
}

func (p *preparer) jupyterRoot() item {
	dir := filepath.Join(p.Cache, "images", "jupyter")
	return item{
		name: "image base with Jupyter", path: dir,
		inputs: []any{jupyterPackages, jupyterPages}, files: []string{"files/settle-cuda-root.sh", "files/settle-jupyter-root.sh"},
		make: func(ctx context.Context) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if err := p.debootstrap(ctx, "extract", dir, jupyterPackages, "--extract-hook="+jupyterPages); err != nil {
				return err
			}
			if err := p.script(ctx, "files/settle-cuda-root.sh", dir); err != nil {
				return err
			}
			return p.script(ctx, "files/settle-jupyter-root.sh", dir)
		},
	}
}

func (p *preparer) jupyterImage(root item) item {
	return item{
		name: "image " + jupyterNames[0], path: filepath.Join(p.Registry(), "sets", "jupyter"),
		inputs: []any{jupyterNames, root.inputs}, files: append([]string{"jupyter_image.go", "toolkit_images.go", "layer.go"}, root.files...),
		make: func(context.Context) error {
			image, err := p.packImage(jupyterConfig, givesDevices, root.path)
			if err != nil {
				return err
			}
			for _, n := range jupyterNames {
				if err := (store.Store{Dir: p.Registry()}).Put(n, image); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// jupyterConfig is TensorFlow's: https://github.com/tensorflow/build/tree/master/tensorflow_runtime_dockerfiles.
var jupyterConfig = v1.Config{
	WorkingDir:   "/tf",
	ExposedPorts: map[string]struct{}{"8888/tcp": {}},
	Cmd:          []string{"jupyter", "notebook", "--notebook-dir=/tf", "--ip=0.0.0.0", "--no-browser", "--allow-root"},
}
