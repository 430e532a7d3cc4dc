package facts

import (
	"reflect"
	"testing"
)

func TestNVIDIA(t *testing.T) {
	h := parse(t,
		"pci=0000:17:00.0 030200 20b0 nvidia", "pci=0000:65:00.0 030000 1eb8 -", "pci=0000:07:00.0 068000 22a3 nvidia-nvswitch", "secure-boot=1",
		"nvlink-bridge=0000:a0:00.0", "fabric=00000000:17:00.0\tIn Progress\tN/A",
		"nouveau=1", "nvidia-loaded=580.173.02", "nvidia-module=580.173.02", "nvidia-library=580.173.02", "nvidia-runfile=1",
		"nvidia-file=libcuda.so.1 /usr/lib/nvidia-375/libcuda.so.375.82", "nvidia-file=nvidia-smi /usr/bin/nvidia-smi",
		"gpu=GPU-5c9a1a3e-0000-0000-0000-000000000000, NVIDIA A100-SXM4-40GB, 00000000:17:00.0, 40960 MiB, Enabled",
		"gpu=GPU-5c9a1a3e-0000-0000-0000-000000000001, NVIDIA GB10, 0000000F:01:00.0, [N/A]",
		"mig=GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c9a1a3e-0000-0000-0000-000000000000)",
		"mig=  MIG 3g.20gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-00000000000a)",
		"mig=  MIG 1g.5gb+me   Device  1: (UUID: MIG-00000000-0000-0000-0000-00000000000b)",
		"mig=GPU 1: NVIDIA GB10 (UUID: GPU-5c9a1a3e-0000-0000-0000-000000000001)",
		"gpu-feature=nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB", "gpu-feature=nvidia.com/cuda.driver.rev=",
	)
	want := NVIDIA{
		Cards:    []Card{{"0000:17:00.0", "20b0", "nvidia"}, {"0000:65:00.0", "1eb8", ""}},
		Switches: 1, Bridges: 1, Fabric: []GPUFabric{{"00000000:17:00.0", "In Progress", "N/A"}}, Loaded: "580.173.02", Module: "580.173.02", Library: "580.173.02", Runfile: true,
		Files:   map[string]string{"libcuda.so.1": "/usr/lib/nvidia-375/libcuda.so.375.82", "nvidia-smi": "/usr/bin/nvidia-smi"},
		Nouveau: Nouveau{Loaded: true, Users: 1},
		GPUs: []GPU{
			{"GPU-5c9a1a3e-0000-0000-0000-000000000000", "NVIDIA A100-SXM4-40GB", "0000:17:00.0", 40960, true, []Instance{
				{"MIG-00000000-0000-0000-0000-00000000000a", "3g.20gb"}, {"MIG-00000000-0000-0000-0000-00000000000b", "1g.5gb+me"},
			}},
			{"GPU-5c9a1a3e-0000-0000-0000-000000000001", "NVIDIA GB10", "000f:01:00.0", 0, false, nil},
		},
		Features: map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/cuda.driver.rev": ""},
	}
	if !reflect.DeepEqual(h.NVIDIA, want) || !h.SecureBoot {
		t.Errorf("%+v, Secure Boot %t", h.NVIDIA, h.SecureBoot)
	}
	if h := parse(t, "pci=0000:17:00.0 030200 20b0 nouveau", "nvidia-loaded=580.173.02", "nvidia-smi=124"); h.NVIDIA.SMI != 124 || h.NVIDIA.Nouveau.Loaded || h.SecureBoot {
		t.Errorf("%+v", h.NVIDIA)
	}
	if h := parse(t, "gpu=GPU-0, ERR!", "gpu=GPU-1, A100, 00000000:17:00.0, 40960 MiB"); len(h.NVIDIA.GPUs) != 1 || h.NVIDIA.GPUs[0].UUID != "GPU-1" {
		t.Errorf("beside a line that says nothing: %+v", h.NVIDIA.GPUs)
	}
	for _, wrong := range []string{"pci=0000:17:00.0 030200", "gpu=No devices were found", "nouveau=many", "nvidia-file=libcuda.so.1", "nvidia-smi=", "gpu-feature=x"} {
		if _, err := Parse(answerOf("pci=0000:17:00.0 030200 20b0 -", wrong)); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

func TestNodeWithMIGInstances(t *testing.T) {
	const node = "cluster=node\tw1\tuid\tTrue\tFalse\tv1.36.3\tcontainerd://2.2.0\t10.0.0.11 \t\tdisk=fast \t\tnvidia.com/gpu=8 \t"
	h := parse(t, "control-plane=1", "api=1", node+"nvidia.com/gpu=4 nvidia.com/mig-1g.5gb=7 nvidia.com/mig-2g.10gb=0 \tnvidia.com/gpu.count,nvidia.com/gpu.product")
	got := h.Cluster.Nodes[0]
	if want := map[string]int{"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 7, "nvidia.com/mig-2g.10gb": 0}; !reflect.DeepEqual(got.Allocatable, want) || got.Capacity["nvidia.com/gpu"] != 8 {
		t.Errorf("%+v", got)
	}
	if want := []string{"nvidia.com/gpu.count", "nvidia.com/gpu.product"}; !reflect.DeepEqual(got.GPULabels, want) {
		t.Errorf("labels %q", got.GPULabels)
	}
}
