package smoke

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

func TestJudgeNotebook(t *testing.T) {
	for _, c := range []struct {
		name, output string
		want         *Devices
		id           reason.ID
		detail       string
	}{
		{name: "TensorFlow", output: "2026-11-21 noise of the library\nkgpu-device TensorFlow /physical_device:CPU:0\nkgpu-device TensorFlow /physical_device:GPU:0\n" +
			"kgpu-card GPU-1f2e3d4c-0000-1111-2222-333344445555\nkgpu-end\n",
			want: &Devices{Source: "TensorFlow", Names: []string{"/physical_device:CPU:0", "/physical_device:GPU:0"}, Cards: []string{"GPU-1f2e3d4c-0000-1111-2222-333344445555"}}},
		{name: "TensorFlow of long ago", output: "kgpu-device TensorFlow /cpu:0\r\nkgpu-device TensorFlow /gpu:0\r\nkgpu-end\r\n",
			want: &Devices{Source: "TensorFlow", Names: []string{"/cpu:0", "/gpu:0"}}},
		{name: "device_lib of today", output: "kgpu-device TensorFlow /device:XLA_GPU:0\nkgpu-device TensorFlow /device:GPU:0\nkgpu-end",
			want: &Devices{Source: "TensorFlow", Names: []string{"/device:XLA_GPU:0", "/device:GPU:0"}}},
		{name: "the driver as the last resort", output: "kgpu-tried TensorFlow finds no GPU, only /device:CPU:0\nkgpu-device CUDA cuda:0 Tesla T4\nkgpu-card MIG-1/2\nkgpu-end\n",
			want: &Devices{Source: "CUDA", Names: []string{"cuda:0 Tesla T4"}, Cards: []string{"MIG-1/2"}, Tried: []string{`TensorFlow: "finds no GPU, only /device:CPU:0"`}}},
		{name: "no GPU", output: "kgpu-tried TensorFlow finds no GPU, only /device:CPU:0\nkgpu-tried CUDA RuntimeError: cuInit returns 100\nkgpu-end\n",
			id: reason.NotebookNoGPU, detail: `no GPU is in the list: TensorFlow: "finds no GPU, only /device:CPU:0"; CUDA: "RuntimeError: cuInit returns 100"`},
		{name: "only what looks like one", output: "kgpu-device TensorFlow /device:XLA_GPU:0\nkgpu-device PyTorch cuda\nkgpu-device CUDA my gpu\nkgpu-end\n",
			id: reason.NotebookNoGPU, detail: "no GPU is in the list: nothing was tried"},
		{name: "nothing", id: reason.NotebookFailed, detail: `the list has no end; the kernel's last words: ""`},
		{name: "cut", output: "kgpu-device CUDA cuda:0 Tesla T4\n\x1b[2JSegmentation fault", id: reason.NotebookFailed,
			detail: `the list has no end; the kernel's last words: "\x1b[2JSegmentation fault"`},
		{name: "escapes", output: "kgpu-device CUDA cuda:0 \x1b]0;owned\x07\nkgpu-card GPU-\x1b[0m\nkgpu-end\nkgpu-device CUDA cuda:1 late\n",
			want: &Devices{Source: "CUDA", Names: []string{`cuda:0 \x1b]0;owned\a`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := JudgeNotebook(c.output)
			if c.want == nil {
				all := reason.All(err)
				if got != nil || len(all) != 1 || all[0].ID != c.id || all[0].Detail != c.detail {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Source != c.want.Source || !slices.Equal(got.Names, c.want.Names) || !slices.Equal(got.Cards, c.want.Cards) || !slices.Equal(got.Tried, c.want.Tried) {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// The code itself, with libraries that answer as the real ones do.
func TestListDevices(t *testing.T) {
	const (
		tf2     = "class config:\n  list_physical_devices = staticmethod(lambda: [D('/physical_device:CPU:0'), D('/physical_device:GPU:0')])\nclass D:\n  def __init__(self, n): self.name = n\n"
		tf2cpu  = "import sys\nsys.stderr.write('Cannot dlopen some GPU libraries\\n')\nclass config:\n  list_physical_devices = staticmethod(lambda: [D('/physical_device:CPU:0')])\nclass D:\n  def __init__(self, n): self.name = n\n"
		local   = "class D:\n  def __init__(self, n): self.name = n\ndef list_local_devices(): return [D('/cpu:0'), D('/gpu:0')]\n"
		torch   = "class cuda:\n  device_count = staticmethod(lambda: 1)\n  get_device_name = staticmethod(lambda i: 'Tesla T4')\n"
		smi     = "#!/bin/sh\necho 'GPU 0: Tesla T4 (UUID: GPU-b0)'\n"
		smiGone = "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n"
	)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  *Devices
	}{
		{"TensorFlow 2", map[string]string{"tensorflow.py": tf2, "nvidia-smi": smi},
			&Devices{Source: "TensorFlow", Names: []string{"/physical_device:CPU:0", "/physical_device:GPU:0"}, Cards: []string{"GPU-b0"}}},
		{"TensorFlow 1", map[string]string{"tensorflow/__init__.py": "", "tensorflow/python/__init__.py": "", "tensorflow/python/client/__init__.py": "",
			"tensorflow/python/client/device_lib.py": local, "nvidia-smi": smiGone},
			&Devices{Source: "TensorFlow", Names: []string{"/cpu:0", "/gpu:0"}}},
		{"PyTorch where TensorFlow sees nothing", map[string]string{"tensorflow.py": tf2cpu, "torch.py": torch},
			&Devices{Source: "PyTorch", Names: []string{"cpu", "cuda:0 Tesla T4"}}},
		{"nothing", map[string]string{"tensorflow.py": "raise Exception('line\\nbreak')", "torch.py": strings.Replace(torch, "1", "0", 1),
			"ctypes.py": "def CDLL(name): raise OSError(name + ' is not there')\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(python, "-I", "-c", "import os, sys; sys.path.insert(0, sys.argv[1]); os.environ['PATH'] = sys.argv[1]; exec(sys.argv[2])", dir, ListDevices) // a machine with cards has a real nvidia-smi
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			got, err := JudgeNotebook(string(out))
			switch {
			case c.want == nil:
				if got != nil || !strings.Contains(err.Error(), `TensorFlow: "Exception: line break"`) || !strings.Contains(err.Error(), `PyTorch: "finds no GPU, only cpu"`) ||
					!strings.Contains(err.Error(), `CUDA: "OSError: libcuda.so.1 is not there"`) {
					t.Errorf("%+v, %v", got, err)
				}
			case err != nil || got.Source != c.want.Source || !slices.Equal(got.Names, c.want.Names) || !slices.Equal(got.Cards, c.want.Cards):
				t.Errorf("%+v, %v of\n%s", got, err, out)
			}
		})
	}
	check := exec.Command(python, "-c", "import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 5))")
	check.Stdin = strings.NewReader(ListDevices)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("Python 3.5 does not understand the code: %v\n%s", err, out)
	}
}
