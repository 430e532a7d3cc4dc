package plan

import (
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// The sample of the proof is that of the driver that runs on the host, whatever another host has, from the inventory's registry.
func TestSampleFollowsTheDriver(t *testing.T) {
	for loaded, want := range map[string]string{
		"375.82":     "registry.k8s.io/cuda-vector-add:v0.1",
		"470.256.02": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04",
		"580.173.02": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04",
	} {
		f := &facts.Host{NVIDIA: facts.NVIDIA{Loaded: loaded}}
		if got := Sample(&inventory.Inventory{}, f); got.Image != want || got.Program == "" {
			t.Errorf("driver %s gets %+v, want %s", loaded, got, want)
		}
	}
	f := &facts.Host{NVIDIA: facts.NVIDIA{Loaded: "580.173.02"}}
	if got := Sample(&inventory.Inventory{Registry: "reg.lan:5000/m"}, f); got.Image != "reg.lan:5000/m/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04" {
		t.Errorf("the mirror's image is %s", got.Image)
	}
}
