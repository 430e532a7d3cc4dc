package facts

import (
	"fmt"
	"strings"
)

// GPUFabric is the state of a GPU in its NVLink fabric, as nvidia-smi -q prints it.
type GPUFabric struct {
	Address string // PCI address as nvidia-smi writes it: 00000000:17:00.0
	State   string // Completed, In Progress, Not Started, or N/A for a GPU without a fabric
	Status  string // once State is Completed: Success, or the error
}

// Ready reports whether programs can use the GPU: it has joined its fabric, or needs none.
func (c GPUFabric) Ready() bool {
	return c.State == "N/A" || c.State == "Completed" && c.Status == "Success"
}

// String is the state in nvidia-smi's words.
func (c GPUFabric) String() string { return fmt.Sprintf("State: %s, Status: %s", c.State, c.Status) }

// FabricNotReady describes the GPUs whose fabric is not ready. It is nil if all are, or if nvidia-smi says nothing of it.
func (n NVIDIA) FabricNotReady() []string {
	var out []string
	for _, c := range n.Fabric {
		if !c.Ready() {
			out = append(out, fmt.Sprintf("card %s: fabric %s", c.Address, c))
		}
	}
	return out
}

// gpuFabric parses a line of facts.sh: address, state and status, separated by tabs.
func gpuFabric(line string) (GPUFabric, error) {
	f := strings.Split(line, "\t")
	if len(f) != 3 {
		return GPUFabric{}, bad("fabric", line, fmt.Errorf("want three fields"))
	}
	return GPUFabric{Address: f[0], State: f[1], Status: f[2]}, nil
}
