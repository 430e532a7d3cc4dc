package smoke

import (
	"os"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// onH100 is what a program of the proof printed on an H100 with driver 580.159.04; its UUID is made up.
func onH100(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/h100/" + name + ".txt")
	must(t, err)
	return string(text)
}

const h100 = "GPU-5a1d0c3e-7b42-4f0a-9c6d-2e8b1f7a9c40"

// What a real card, driver and sample say is understood, and of it the line that tells what went wrong is told, where the last one
// is another.
func TestProofOfARealCard(t *testing.T) {
	node := Node{Name: "w1", GPUs: []GPU{{UUID: h100, Name: "NVIDIA H100 80GB HBM3"}}}
	table, err := CheckProof([]Node{node}, logsOf("w1", onH100(t, "proof")))
	if err != nil || len(table.Rows) != 1 || table.Rows[0].UUID != h100 || table.Rows[0].By() != "smi-w1-0" {
		t.Errorf("%+v, %v", table, err)
	}
	const cannot = "SMOKE_CANNOT_COMPUTE the GPU " + h100 + " (NVIDIA H100 80GB HBM3) is listed and does not compute: vectorAdd in Job smi-w1-0 ended with status 1: "
	const missing = "SMOKE_CARD_MISSING no Job saw the GPU " + h100 + " (NVIDIA H100 80GB HBM3)"
	const ended = "SMOKE_FAILED nvidia-smi in Job smi-w1-0 ended with status "
	for name, want := range map[string][]string{
		"proof-full":       {cannot + `"Failed to allocate device vector A (error code out of memory)!"`},
		"proof-no-code":    {cannot + `"Failed to launch vectorAdd kernel (error code no kernel image is available for execution on the device)!"`},
		"proof-hidden":     {cannot + `"Failed to allocate device vector A (error code no CUDA-capable device is detected)!"`},
		"proof-no-cuda":    {cannot + `"Failed to allocate device vector A (error code CUDA driver version is insufficient for CUDA runtime version)!"`},
		"proof-no-card":    {`SMOKE_FAILED Job smi-w1-0 asked for a GPU and sees none: "No devices found."`, missing},
		"proof-mismatch":   {ended + `18: "Failed to initialize NVML: Driver/library version mismatch"`, missing},
		"proof-no-library": {ended + `12: "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed and present in your system."`, missing},
	} {
		t.Run(name, func(t *testing.T) { expect(t, node, logsOf("w1", onH100(t, name)), want...) })
	}
	node.GPUs[0].Share = 2
	table, err = CheckProof([]Node{node}, logsOf("w1", onH100(t, "proof"), onH100(t, "proof-full")))
	if err != nil || table.Rows[0].By() != "smi-w1-0, smi-w1-1" {
		t.Errorf("shared with others who have its memory: %+v, %v", table, err)
	}
}

func TestNotebookOnARealCard(t *testing.T) {
	for name, want := range map[string]string{
		"notebook":             "multiplies matrices on cuda:0 NVIDIA H100 80GB HBM3 in 0.108 ms (PyTorch 2.11.0+cu130)",
		"notebook-full":        "lists cuda:0 NVIDIA H100 80GB HBM3, and others have its memory: not tried (PyTorch 2.11.0+cu130)",
		"notebook-driver":      "fills and reads memory on cuda:0 NVIDIA H100 80GB HBM3 in 0.310 ms (CUDA 13.0)",
		"notebook-driver-full": "lists cuda:0 NVIDIA H100 80GB HBM3, and others have its memory: not tried (CUDA 13.0)",
	} {
		if d, err := CheckNotebook(onH100(t, name)); err != nil || d.String() != want || strings.Join(d.UUIDs, "") != h100 {
			t.Errorf("%s: %+v, %v, want %s", name, d, err, want)
		}
	}
	_, err := CheckNotebook(onH100(t, "notebook-hidden"))
	const want = `PyTorch: "finds no GPU, only cpu"; CUDA: "RuntimeError: cuInit returns 100"`
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.NotebookNoGPU || !strings.HasSuffix(all[0].Detail, want) {
		t.Errorf("hidden: %v", err)
	}
}
