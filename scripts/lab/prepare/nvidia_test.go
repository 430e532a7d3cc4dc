package prepare

import (
	"os"
	"path/filepath"
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
