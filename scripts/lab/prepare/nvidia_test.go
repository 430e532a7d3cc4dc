package prepare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStubsAreWhatTheHeaderHasAndNVMLLacks(t *testing.T) {
	dir := t.TempDir()
	header := "nvmlReturn_t DECLDIR nvmlInit_v2(void);\n#define nvmlInit nvmlInit_v2\nDEPRECATED(13.0) nvmlReturn_t DECLDIR nvmlDeviceGetFanSpeed\n(nvmlDevice_t device);\n" +
		"#define nvmlDeviceGetCount nvmlDeviceGetCount_v2\nnvmlReturn_t DECLDIR nvmlDeviceGetCount_v2(unsigned *n);\n"
	if err := os.WriteFile(filepath.Join(dir, "nvml.h"), []byte(header), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nvml.c"), []byte("nvmlReturn_t nvmlInit_v2(void) { return 0; }\nnvmlReturn_t nvmlInit(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := stubs(filepath.Join(dir, "nvml.h"), dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, stubFile))
	want := `// Written by prepare: what nvml.h declares and nvml.c does not have.
int nvmlDeviceGetCount(void) { return 3; } // NVML_ERROR_NOT_SUPPORTED
int nvmlDeviceGetCount_v2(void) { return 3; } // NVML_ERROR_NOT_SUPPORTED
int nvmlDeviceGetFanSpeed(void) { return 3; } // NVML_ERROR_NOT_SUPPORTED
`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want\n%s", got, err, want)
	}
}

// kgpu asks for these packages by name, and keeps drivers out of the repository by its label.
func TestCUDARepositoryOffersToolkits(t *testing.T) {
	p := newPreparer(t)
	if err := p.keys(t.Context()); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := p.packStandIns(t.Context(), toolkits(), root); err != nil {
		t.Fatal(err)
	}
	if err := p.flatRepository(t.Context(), root, "Origin=NVIDIA", "Label=NVIDIA CUDA"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"Packages":  {"Package: cuda-toolkit-12-9\n", "Package: cuda-toolkit-13-0\n", "Package: cuda-toolkit-13-1\n", "Package: cudnn9-cuda-12\n", "Package: cudnn9-cuda-13\n"},
		"InRelease": {"\nOrigin: NVIDIA\n", "\nLabel: NVIDIA CUDA\n"},
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s has no %q:\n%s", file, w, text)
			}
		}
	}
}
