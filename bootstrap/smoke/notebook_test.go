package smoke

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// TestCheckNotebook: the output of the code with errors of real frameworks:
// https://github.com/tensorflow/tensorflow/issues/99592 and 97387,
// https://github.com/bnsreenu/digitalsreeni-image-annotator/issues/57.
func TestCheckNotebook(t *testing.T) {
	const (
		tf       = "kgpu-version TensorFlow 2.17.0\nkgpu-device TensorFlow /physical_device:CPU:0\nkgpu-device TensorFlow /physical_device:GPU:0 NVIDIA GeForce RTX 5090\n"
		invalid  = "InternalError: {{function_node __wrapped__Mul_device_/job:localhost/replica:0/task:0/device:GPU:0}} 'cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, 0, reinterpret_cast<CUstream>(stream), params, nullptr)' failed with 'CUDA_ERROR_INVALID_HANDLE' [Op:Mul]"
		noKernel = "AcceleratorError: CUDA error: no kernel image is available for execution on the device CUDA kernel errors might be asynchronously reported at some other API call"
		torch    = "kgpu-version PyTorch 2.11.0+cu128\nkgpu-device PyTorch cpu\nkgpu-device PyTorch cuda:0 NVIDIA GeForce GTX 1080 Ti\n"
	)
	for _, c := range []struct {
		name, output string
		want         *Devices
		says         string // of the Devices
		id           reason.ID
		detail       string
	}{
		{name: "TensorFlow", output: "trying TensorFlow\n" + tf + "kgpu-computed TensorFlow 1 412\nkgpu-card GPU-1f2e3d4c-0000-1111-2222-333344445555\nkgpu-end\n",
			want: &Devices{Source: "TensorFlow", Version: "2.17.0", GPUs: []Device{{Name: "/physical_device:GPU:0 NVIDIA GeForce RTX 5090", Took: 412 * time.Microsecond}}, UUIDs: []string{"GPU-1f2e3d4c-0000-1111-2222-333344445555"}},
			says: "multiplies matrices on /physical_device:GPU:0 NVIDIA GeForce RTX 5090 in 0.412 ms (TensorFlow 2.17.0)"},
		{name: "TensorFlow of long ago", output: "kgpu-version TensorFlow 1.4.0\r\nkgpu-device TensorFlow /cpu:0\r\nkgpu-device TensorFlow /gpu:0\r\nkgpu-computed TensorFlow 1 0\r\nkgpu-end\r\n",
			want: &Devices{Source: "TensorFlow", Version: "1.4.0", GPUs: []Device{{Name: "/gpu:0", Took: time.Microsecond}}},
			says: "multiplies matrices on /gpu:0 in 0.001 ms (TensorFlow 1.4.0)"},
		{name: "the driver as the last resort", output: "kgpu-tried TensorFlow finds no GPU, only /device:CPU:0\nkgpu-version CUDA 13.2\nkgpu-device CUDA cuda:0 Tesla T4\nkgpu-computed CUDA 0 1234567\nkgpu-card MIG-1/2\nkgpu-end\n",
			want: &Devices{Source: "CUDA", Version: "13.2", GPUs: []Device{{Name: "cuda:0 Tesla T4", Took: 1234567 * time.Microsecond}}, UUIDs: []string{"MIG-1/2"}, Tried: []string{`TensorFlow: "finds no GPU, only /device:CPU:0"`}},
			says: "fills and reads memory on cuda:0 Tesla T4 in 1234.567 ms (CUDA 13.2)"},
		{name: "another one computes", output: tf + "kgpu-failed TensorFlow 1 " + invalid + "\n" + torch + "kgpu-computed PyTorch 1 9\nkgpu-end\n",
			want: &Devices{Source: "PyTorch", Version: "2.11.0+cu128", GPUs: []Device{{Name: "cuda:0 NVIDIA GeForce GTX 1080 Ti", Took: 9 * time.Microsecond}},
				Tried: []string{`TensorFlow 2.17.0 lists /physical_device:GPU:0 NVIDIA GeForce RTX 5090 and cannot compute on it: "` + invalid + `"`}},
			says: "multiplies matrices on cuda:0 NVIDIA GeForce GTX 1080 Ti in 0.009 ms (PyTorch 2.11.0+cu128)"},
		{name: "somebody else has the memory", output: torch + "kgpu-busy PyTorch 1 OutOfMemoryError: CUDA out of memory.\nkgpu-end\n",
			want: &Devices{Source: "PyTorch", Version: "2.11.0+cu128", GPUs: []Device{{Name: "cuda:0 NVIDIA GeForce GTX 1080 Ti", Full: `"OutOfMemoryError: CUDA out of memory."`}}},
			says: "lists cuda:0 NVIDIA GeForce GTX 1080 Ti, and others have its memory: not tried (PyTorch 2.11.0+cu128)"},
		{name: "TensorFlow on Blackwell", output: tf + "kgpu-failed TensorFlow 1 " + invalid + "\nkgpu-card GPU-5090\nkgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `TensorFlow 2.17.0 lists /physical_device:GPU:0 NVIDIA GeForce RTX 5090 and cannot compute on it: "` + invalid + `" (card GPU-5090)`},
		{name: "PyTorch on Pascal", output: "kgpu-tried TensorFlow ModuleNotFoundError: No module named 'tensorflow'\n" + torch + "kgpu-failed PyTorch 1 " + noKernel + "\nkgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `PyTorch 2.11.0+cu128 lists cuda:0 NVIDIA GeForce GTX 1080 Ti and cannot compute on it: "` + noKernel + `"`},
		{name: "one of two cards", output: torch + "kgpu-device PyTorch cuda:1 old\nkgpu-computed PyTorch 1 9\nkgpu-failed PyTorch 2 why\nkgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `PyTorch 2.11.0+cu128 lists cuda:1 old and cannot compute on it: "why"`},
		{name: "a library that ends its process", output: tf + "kgpu-died TensorFlow exit status -6: F no kernel image\nkgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `TensorFlow 2.17.0 lists /physical_device:GPU:0 NVIDIA GeForce RTX 5090 and cannot compute on it: "exit status -6: F no kernel image"`},
		{name: "listed only", output: tf + "kgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `TensorFlow 2.17.0 lists /physical_device:GPU:0 NVIDIA GeForce RTX 5090 and cannot compute on it: it says nothing`},
		{name: "the processor computes", output: tf + "kgpu-computed TensorFlow 0 5\nkgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `TensorFlow 2.17.0 lists /physical_device:GPU:0 NVIDIA GeForce RTX 5090 and cannot compute on it: it says nothing`},
		{name: "numbers that are none", output: torch + "kgpu-computed PyTorch 7 5\nkgpu-computed PyTorch -1 5\nkgpu-computed PyTorch 1 -5\nkgpu-computed PyTorch 1 99999999999\nkgpu-computed PyTorch\nkgpu-computed\nkgpu-end\n", id: reason.NotebookCannotCompute,
			detail: `PyTorch 2.11.0+cu128 lists cuda:0 NVIDIA GeForce GTX 1080 Ti and cannot compute on it: it says nothing`},
		{name: "no GPU", output: "kgpu-tried TensorFlow finds no GPU, only /device:CPU:0\nkgpu-tried CUDA RuntimeError: cuInit returns 802\nkgpu-end\n",
			id: reason.NotebookNoGPU, detail: `no GPU is in the list: TensorFlow: "finds no GPU, only /device:CPU:0"; CUDA: "RuntimeError: cuInit returns 802"`},
		{name: "only what looks like one", output: "kgpu-device TensorFlow /device:XLA_GPU:0\nkgpu-device PyTorch cuda\nkgpu-device CUDA my gpu\nkgpu-end\n",
			id: reason.NotebookNoGPU, detail: "no GPU is in the list: TensorFlow: ; PyTorch: ; CUDA: "},
		{name: "no library", output: "kgpu-end\n", id: reason.NotebookNoGPU, detail: "no GPU is in the list: nothing was tried"},
		{name: "nothing", id: reason.NotebookFailed, detail: `its report has no end; the kernel's last words: ""`},
		{name: "cut", output: torch + "kgpu-computed PyTorch 1 5\n\x1b[2JSegmentation fault", id: reason.NotebookFailed,
			detail: `its report has no end; the kernel's last words: "\x1b[2JSegmentation fault"`},
		{name: "escapes", output: "kgpu-version CUDA \x1b[2J\nkgpu-device CUDA cuda:0 \x1b]0;owned\x07\nkgpu-computed CUDA 0 5\nkgpu-card GPU-\x1b[0m\nkgpu-end\nkgpu-device CUDA cuda:1 late\n",
			want: &Devices{Source: "CUDA", Version: `\x1b[2J`, GPUs: []Device{{Name: `cuda:0 \x1b]0;owned\a`, Took: 5 * time.Microsecond}}},
			says: `fills and reads memory on cuda:0 \x1b]0;owned\a in 0.005 ms (CUDA \x1b[2J)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := CheckNotebook(c.output)
			if c.want == nil {
				all := reason.All(err)
				if got != nil || len(all) != 1 || all[0].ID != c.id || all[0].Detail != c.detail {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("%+v, %v; want %+v", got, err, c.want)
			}
			if says := got.String(); says != c.says {
				t.Errorf("it says %q, want %q", says, c.says)
			}
		})
	}
}

// TestComputeOnDevices runs the code with libraries that answer as the real ones do: testdata/libraries, and the
// driver's in C.
func TestComputeOnDevices(t *testing.T) {
	python, err := exec.LookPath("python3")
	must(t, err)
	const (
		smi     = "#!/bin/sh\necho 'GPU 0: Tesla T4 (UUID: GPU-b0)'\n"
		smiGone = "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n"
		none    = "raise ModuleNotFoundError('none')\n"
		noCUDA  = "def CDLL(name): raise OSError(name + ' is not there')\n"
		ofTF    = "/physical_device:GPU:0 Tesla T4"
	)
	tf2 := map[string]string{"tensorflow.py": "tensorflow2.py", "nvidia-smi": smi}
	tf1 := map[string]string{"tensorflow/__init__.py": "tensorflow1.py", "tensorflow/python/__init__.py": "", "tensorflow/python/client/__init__.py": "",
		"tensorflow/python/client/device_lib.py": "device_lib.py", "nvidia-smi": smiGone}
	torch := map[string]string{"tensorflow.py": none, "torch.py": "torch.py"}
	both := map[string]string{"tensorflow.py": "tensorflow2.py", "torch.py": "torch.py"}
	for _, c := range []struct {
		name  string
		files map[string]string // a text, or the name of a file of testdata/libraries
		env   string
		want  *Devices // but for the time
		id    reason.ID
		words string
	}{
		{"TensorFlow 2", tf2, "", &Devices{Source: "TensorFlow", Version: "2.17.0", GPUs: []Device{{Name: ofTF}}, UUIDs: []string{"GPU-b0"}}, "", ""},
		{"TensorFlow 1", tf1, "", &Devices{Source: "TensorFlow", Version: "1.13.1", GPUs: []Device{{Name: "/device:GPU:0 Tesla T4"}}}, "", ""},
		{"PyTorch", torch, "", &Devices{Source: "PyTorch", Version: "2.11.0+cu128", GPUs: []Device{{Name: "cuda:0 Tesla T4"}}, Tried: []string{`TensorFlow: "ModuleNotFoundError: none"`}}, "", ""},
		{"TensorFlow 2 without code for the card", tf2, "FAULT=launch", nil, reason.NotebookCannotCompute, "TensorFlow 2.17.0 lists " + ofTF + ` and cannot compute on it: "InternalError: .*CUDA_ERROR_INVALID_HANDLE' \[Op:Mul\] name:" \(card GPU-b0\)$`},
		{"TensorFlow 1 without code for the card", tf1, "FAULT=launch", nil, reason.NotebookCannotCompute, "CUDA_ERROR_INVALID_HANDLE"},
		{"PyTorch without code for the card", torch, "FAULT=kernel", nil, reason.NotebookCannotCompute, `cuda:0 Tesla T4 and cannot compute on it: "AcceleratorError: CUDA error: no kernel image is available for execution on the device CUDA`},
		{"a wrong product", tf2, "FAULT=wrong", nil, reason.NotebookCannotCompute, `"ValueError: the product is wrong"`},
		{"a wrong product of a graph", tf1, "FAULT=wrong", nil, reason.NotebookCannotCompute, `"ValueError: the product is wrong"`},
		{"a wrong product of PyTorch", torch, "FAULT=wrong", nil, reason.NotebookCannotCompute, `"ValueError: the product is wrong"`},
		{"on the processor", tf2, "FAULT=cpu", nil, reason.NotebookCannotCompute, "it was computed on /device:CPU:0"},
		{"TensorFlow aborts", tf2, "FAULT=abort", nil, reason.NotebookCannotCompute, `"exit status -6: F tensorflow.*no kernel image"`},
		{"both abort", both, "FAULT=abort", nil, reason.NotebookCannotCompute, "TensorFlow 2.17.0 lists .*PyTorch 2.11.0.* lists "},
		{"killed", tf2, "FAULT=killed", nil, reason.NotebookFailed, "TensorFlow was killed"},
		{"somebody else has the memory", torch, "FAULT=memory", &Devices{Source: "PyTorch", Version: "2.11.0+cu128", GPUs: []Device{{Name: "cuda:0 Tesla T4", Full: `"OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."`}},
			Tried: []string{`TensorFlow: "ModuleNotFoundError: none"`}}, "", ""},
		{"nothing", map[string]string{"tensorflow.py": "raise Exception('line\\nbreak')", "torch.py": "torch.py", "ctypes.py": noCUDA}, "CARDS=0", nil, reason.NotebookNoGPU,
			`TensorFlow: "Exception: line break"; PyTorch: "finds no GPU, only cpu"; CUDA: "OSError: libcuda.so.1 is not there"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "matrix.py"), libraryText(t, "matrix.py"))
			for name, text := range c.files {
				if strings.HasSuffix(text, ".py") {
					text = libraryText(t, text)
				}
				write(t, filepath.Join(dir, name), text)
			}
			cmd := exec.Command(python, "-c", "import os, sys; os.environ['PATH'] = sys.argv[1]; exec(sys.argv[2])", dir, ComputeOnDevices) // a machine with cards has a real nvidia-smi
			cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, c.env)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			got, err := CheckNotebook(string(out))
			if c.want == nil {
				all := reason.All(err)
				if got != nil || len(all) != 1 || all[0].ID != c.id || !regexp.MustCompile(c.words).MatchString(all[0].Detail) {
					t.Errorf("%+v, %v of\n%s", got, err, out)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v of\n%s", err, out)
			}
			for i := range got.GPUs {
				if got.GPUs[i].Took == 0 && got.GPUs[i].Full == "" {
					t.Errorf("no time of\n%s", out)
				}
				got.GPUs[i].Took = 0
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v of\n%s", got, c.want, out)
			}
		})
	}
	for _, code := range []string{compute, ComputeOnDevices} {
		check := exec.Command(python, "-c", "import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 5))")
		check.Stdin = strings.NewReader(code)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("Python 3.5 does not understand the code: %v\n%s", err, out)
		}
	}
}

func libraryText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "libraries", name))
	must(t, err)
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o755))
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
