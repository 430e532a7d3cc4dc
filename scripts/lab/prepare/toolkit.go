package prepare

import (
	"context"
	"runtime"
)

// NVIDIA's container software that is published as Go modules. The linker flags are those of the modules' own Makefiles: the
// functions of the driver's library stay unresolved until that library is opened.
var (
	containerToolkit = program{
		name: "nvidia-container-toolkit", version: "1.20.0", module: "github.com/NVIDIA/nvidia-container-toolkit",
		packages: []string{
			"github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk",
			"github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook",
			"github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-container-runtime",
			"github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-container-runtime-hook",
		},
		ldflags: "'-extldflags=" + unresolved + " -Wl,-z,lazy' -X github.com/NVIDIA/nvidia-container-toolkit/internal/info.version=1.20.0",
	}
	devicePlugin = program{
		name: "k8s-device-plugin", version: "0.19.3", module: "github.com/NVIDIA/k8s-device-plugin",
		packages: []string{"github.com/NVIDIA/k8s-device-plugin/cmd/..."},
		ldflags:  "'-extldflags=" + unresolved + "' -X github.com/NVIDIA/k8s-device-plugin/internal/info.version=v0.19.3",
	}
)

const unresolved = "-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files"

// nvidiaToolkit makes what runs containers with cards: the toolkit's packages, the device plugin's image and small images to run.
func (p *preparer) nvidiaToolkit(ctx context.Context) error {
	tools, root := p.toolsTree(), p.cudaRoot()
	for _, i := range []item{
		p.buildWithC(containerToolkit), p.toolkitRepository(),
		p.buildWithC(devicePlugin), tools, p.devicePluginImage(tools),
		root, p.sampleImages(root),
	} {
		if err := p.do(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// buildWithC makes programs that call C functions. They are linked to the C library, which is compatible upwards: the Debian
// release that they run on must not be older than this machine's.
func (p *preparer) buildWithC(g program) item {
	dir := p.Bin(g.name, g.version)
	return item{
		name: g.name + " " + g.version, path: dir,
		inputs: []any{"cgo", g.name, g.version, g.module, g.packages, g.ldflags, runtime.Version()},
		make: func(ctx context.Context) error {
			if err := p.compiler(ctx); err != nil {
				return err
			}
			wrapper, err := p.wrapper(ctx, g.name, g.module, g.version)
			if err != nil {
				return err
			}
			if err := emptyDir(dir); err != nil {
				return err
			}
			args := append([]string{"-n", "10", "go", "build", "-trimpath", "-ldflags", "-s -w " + g.ldflags, "-o", dir + "/"}, g.packages...)
			return command{dir: wrapper, env: append(p.goEnv(), "CGO_ENABLED=1")}.run(ctx, "nice", args...)
		},
	}
}
