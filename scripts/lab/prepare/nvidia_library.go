package prepare

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/src"
)

// driver is one release of NVIDIA's driver that the lab has stand-ins for.
type driver struct {
	version string
	cuda    int // the newest CUDA that it runs, as cuDriverGetVersion says it
}

func (d driver) branch() string { return d.version[:strings.IndexByte(d.version, '.')] }

// nvmlHeader is the module with NVIDIA's nvml.h, in the version that the container toolkit is built with.
const nvmlHeader = "github.com/NVIDIA/go-nvml@v0.13.3-1"

// nvidiaLibrary compiles the stand-ins for libnvidia-ml, libcuda and nvidia-smi.
func (p *preparer) nvidiaLibrary(d driver) item {
	dir := p.Bin("nvml", d.version)
	return item{
		name: "nvml " + d.version, path: dir,
		inputs: []any{nvmlHeader, d, nvmlSources()}, files: []string{"nvidia_library.go"},
		make: func(ctx context.Context) error {
			if err := p.compiler(ctx); err != nil {
				return err
			}
			module, err := download(ctx, nvmlHeader)
			if err != nil {
				return err
			}
			include, code := filepath.Join(module, "gen/nvml"), filepath.Join(p.work(), "nvml")
			if err := emptyDir(code); err != nil {
				return err
			}
			for name, text := range nvmlSources() {
				if err := os.WriteFile(filepath.Join(code, name), []byte(text), 0o644); err != nil {
					return err
				}
			}
			if err := stubs(filepath.Join(include, "nvml.h"), code); err != nil {
				return err
			}
			if err := emptyDir(dir); err != nil {
				return err
			}
			gcc := func(out string, args ...string) error {
				args = append([]string{"-std=gnu11", "-O2", "-s", "-Wall", "-I" + include, "-o", filepath.Join(dir, out),
					fmt.Sprintf("-DVERSION=%q", d.version), fmt.Sprintf("-DCUDA=%d", d.cuda)}, args...)
				return command{dir: code}.run(ctx, "gcc", args...)
			}
			if err := gcc("libnvidia-ml.so", "-fPIC", "-shared", "-Wl,-soname,libnvidia-ml.so.1", "nvml.c", "cards.c", stubFile); err != nil {
				return err
			}
			if err := gcc("libcuda.so", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "cuda.c", "cards.c"); err != nil {
				return err
			}
			return gcc("nvidia-smi", "smi.c")
		},
	}
}

func nvmlSources() map[string]string {
	all := map[string]string{}
	entries, err := fs.ReadDir(src.FS, "nvml")
	for _, e := range entries {
		text, readErr := fs.ReadFile(src.FS, path.Join("nvml", e.Name()))
		all[e.Name()], err = string(text), readErr
	}
	if err != nil {
		panic(err) // the folder is embedded
	}
	return all
}

const stubFile = "stubs.c"

var (
	declaredFunction    = regexp.MustCompile(`nvmlReturn_t\s+DECLDIR\s+(nvml\w+)\s*\(`)
	unversionedFunction = regexp.MustCompile(`(?m)^\s*#\s*define\s+(nvml[A-Z]\w+)\s+nvml\w+_v\d+\s*$`)
	implementedFunction = regexp.MustCompile(`(?m)^nvmlReturn_t (nvml\w+)\(`)
)

// stubs writes the functions of the header that nvml.c does not have: they are not supported.
func stubs(header, code string) error {
	declared, err := os.ReadFile(header)
	if err != nil {
		return err
	}
	ours, err := os.ReadFile(filepath.Join(code, "nvml.c"))
	if err != nil {
		return err
	}
	have := names(implementedFunction, ours)
	lines := []string{`// Written by prepare: what nvml.h declares and nvml.c does not have.`}
	wanted := append(names(declaredFunction, declared), names(unversionedFunction, declared)...)
	slices.Sort(wanted)
	for _, f := range slices.Compact(wanted) {
		if !slices.Contains(have, f) {
			lines = append(lines, "int "+f+"(void) { return 3; } // NVML_ERROR_NOT_SUPPORTED")
		}
	}
	return os.WriteFile(filepath.Join(code, stubFile), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func names(pattern *regexp.Regexp, text []byte) []string {
	var all []string
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	return all
}
