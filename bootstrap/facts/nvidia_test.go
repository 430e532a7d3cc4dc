package facts

import (
	"reflect"
	"testing"
)

func TestNVIDIA(t *testing.T) {
	h := parse(t,
		"pci=0000:17:00.0 030200 20b0 nvidia", "pci=0000:65:00.0 030000 1eb8 -", "pci=0000:07:00.0 068000 22a3 nvidia-nvswitch", "secure-boot=1",
		"nouveau=1", "nvidia-loaded=580.173.02", "nvidia-module=580.173.02", "nvidia-library=580.173.02", "nvidia-runfile=1",
		"nvidia-file=libcuda.so.1 /usr/lib/nvidia-375/libcuda.so.375.82", "nvidia-file=nvidia-smi /usr/bin/nvidia-smi",
		"gpu=GPU-5c9a1a3e-0000-0000-0000-000000000000, NVIDIA A100-SXM4-40GB, 00000000:17:00.0, 40960 MiB",
		"gpu=GPU-5c9a1a3e-0000-0000-0000-000000000001, NVIDIA GB10, 0000000F:01:00.0, [N/A]",
	)
	want := NVIDIA{
		Cards:    []Card{{"0000:17:00.0", "20b0", "nvidia"}, {"0000:65:00.0", "1eb8", ""}},
		Switches: 1, Loaded: "580.173.02", Module: "580.173.02", Library: "580.173.02", Runfile: true,
		Files:   map[string]string{"libcuda.so.1": "/usr/lib/nvidia-375/libcuda.so.375.82", "nvidia-smi": "/usr/bin/nvidia-smi"},
		Nouveau: Nouveau{Loaded: true, Users: 1},
		Seen: []GPU{
			{"GPU-5c9a1a3e-0000-0000-0000-000000000000", "NVIDIA A100-SXM4-40GB", "0000:17:00.0", 40960},
			{"GPU-5c9a1a3e-0000-0000-0000-000000000001", "NVIDIA GB10", "000f:01:00.0", 0},
		},
	}
	if !reflect.DeepEqual(h.NVIDIA, want) || !h.SecureBoot {
		t.Errorf("%+v, Secure Boot %t", h.NVIDIA, h.SecureBoot)
	}
	if h := parse(t, "pci=0000:17:00.0 030200 20b0 nouveau", "nvidia-loaded=580.173.02", "nvidia-smi=124"); h.NVIDIA.SMI != 124 || h.NVIDIA.Nouveau.Loaded || h.SecureBoot {
		t.Errorf("%+v", h.NVIDIA)
	}
	for _, wrong := range []string{"pci=0000:17:00.0 030200", "gpu=No devices were found", "nouveau=many", "nvidia-file=libcuda.so.1", "nvidia-smi="} {
		if _, err := Parse(answerOf("pci=0000:17:00.0 030200 20b0 -", wrong)); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}
