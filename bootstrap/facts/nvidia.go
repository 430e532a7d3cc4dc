package facts

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// NVIDIA is the state of a host's NVIDIA cards and their driver.
type NVIDIA struct {
	Cards    []Card
	Switches int // number of NVSwitches
	Bridges  int // number of ConnectX functions that manage NVLink 5 switches
	Fabric   []GPUFabric
	Loaded   string // version of the loaded kernel module; empty if none
	Module   string // version of the kernel module that a boot would load; empty if none
	Library  string // version of libnvidia-ml; empty if none
	// Files has the paths of the driver's files that containers need, symbolic links resolved, by the name that
	// programs look for: libcuda.so.1 → /usr/lib/nvidia-375/libcuda.so.375.82.
	Files   map[string]string
	Runfile bool // the driver is from NVIDIA's .run installer, not from a package
	Nouveau Nouveau
	GPUs    []GPU // the GPUs that nvidia-smi lists
	SMI     int   // exit status of nvidia-smi: 124 if it hangs, zero also if it is not installed

	Features map[string]string // node labels from gpu-feature-discovery; nil if it does not run
}

// TimedOut reports whether an exit status is that of a program that timeout(1) ended, or had to kill.
func TimedOut(status int) bool { return status == 124 || status == 137 }

// Card is an NVIDIA graphics card on the PCI bus, whether or not a driver runs it.
type Card struct {
	Address string // 0000:17:00.0
	ID      string // PCI device ID, four hexadecimal digits
	Driver  string // kernel driver that it is bound to: nvidia, nouveau, vfio-pci; empty if none
}

// Nouveau is the state of the kernel's own driver for NVIDIA cards.
type Nouveau struct {
	Loaded bool
	Users  int
}

// GPU is a GPU as nvidia-smi lists it.
type GPU struct {
	UUID, Name string
	Address    string // PCI address in the form of Card.Address
	MemoryMiB  int
	MIG        bool // MIG is on: it offers only its instances
	Instances  []Instance
}

// Instance is a MIG instance of a GPU.
type Instance struct{ UUID, Profile string } // MIG-…, 1g.5gb

// The classes of PCI functions. Source: PCI Code and ID Assignment Specification.
const (
	classDisplay = "03"
	classBridge  = "0680"
)

func nvidia(a answer, h *Host) error {
	n := &h.NVIDIA
	for _, line := range a["pci"] {
		f := strings.Fields(line)
		if len(f) != 4 {
			return bad("pci", line, fmt.Errorf("want four words"))
		}
		switch {
		case strings.HasPrefix(f[1], classDisplay):
			n.Cards = append(n.Cards, Card{Address: f[0], ID: f[2], Driver: strings.TrimPrefix(f[3], "-")})
		case strings.HasPrefix(f[1], classBridge):
			n.Switches++
		}
	}
	n.Loaded, n.Module, n.Library = a.first("nvidia-loaded"), a.first("nvidia-module"), a.first("nvidia-library")
	n.Runfile = a.has("nvidia-runfile")
	n.Bridges = len(a["nvlink-bridge"])
	for _, line := range a["fabric"] {
		c, err := gpuFabric(line)
		if err != nil {
			return err
		}
		n.Fabric = append(n.Fabric, c)
	}
	for _, line := range a["nvidia-file"] {
		name, path, ok := strings.Cut(line, " ")
		if !ok {
			return bad("nvidia-file", line, fmt.Errorf("want two words"))
		}
		put(&n.Files, name, path)
	}
	for _, line := range a["gpu"] {
		g, err := gpu(line)
		if err != nil && strings.HasPrefix(line, "GPU-") {
			continue // it belongs to a failing GPU, which counts as lost
		}
		if err != nil {
			return bad("gpu", line, err)
		}
		n.GPUs = append(n.GPUs, g)
	}
	n.instances(a["mig"])
	var err error
	if n.Features, err = Features(a["gpu-feature"]); err != nil {
		return err
	}
	status, noStatus := a.number("nvidia-smi", true)
	users, noUsers := a.number("nouveau", true)
	n.SMI, n.Nouveau = int(status), Nouveau{Loaded: a.has("nouveau"), Users: int(users)}
	return cmp.Or(noStatus, noUsers)
}

// Features parses the output of gpu-feature-discovery, a line key=value for each label; nil if there are no lines.
func Features(lines []string) (map[string]string, error) {
	var out map[string]string
	for _, line := range lines {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, bad("gpu-feature", line, fmt.Errorf("want key=value"))
		}
		put(&out, key, value)
	}
	return out, nil
}

// profile matches the MIG profiles, such as 1g.5gb, 1c.2g.10gb, 1g.10gb+me, which become part of a resource's name.
var profile = regexp.MustCompile(`^[0-9][0-9a-z.+-]{0,40}$`)

// instances reads lines of `nvidia-smi -L`: each GPU is followed by its instances, such as "  MIG 1g.5gb      Device
// 0: (UUID: MIG-c6d4f1ef-…)".
func (n *NVIDIA) instances(lines []string) {
	var of *GPU
	for _, line := range lines {
		_, rest, ok := strings.Cut(line, "(UUID: ")
		uuid, whole := strings.CutSuffix(rest, ")")
		f := strings.Fields(line)
		switch {
		case !ok || !whole:
		case f[0] == "GPU":
			of = nil
			for i := range n.GPUs {
				if n.GPUs[i].UUID == uuid {
					of = &n.GPUs[i]
				}
			}
		case f[0] == "MIG" && of != nil && profile.MatchString(f[1]):
			of.Instances = append(of.Instances, Instance{UUID: uuid, Profile: f[1]})
		}
	}
}

// gpu parses a line of nvidia-smi, such as "GPU-8f0e…, NVIDIA A100-SXM4-40GB, 00000000:17:00.0, 40960 MiB, Disabled".
// Drivers before 450 do not know MIG.
func gpu(line string) (GPU, error) {
	f := strings.Split(line, ", ")
	if len(f) != 4 && len(f) != 5 {
		return GPU{}, fmt.Errorf("want four or five fields")
	}
	// nvidia-smi writes a PCI domain with eight digits, the kernel with four.
	address := strings.ToLower(f[2])
	if len(address) == len("00000000:17:00.0") {
		address = address[4:]
	}
	g := GPU{UUID: f[0], Name: f[1], Address: address, MIG: f[len(f)-1] == "Enabled"}
	if size, err := strconv.Atoi(strings.TrimSuffix(f[3], " MiB")); err == nil { // "[N/A]" if the GPU uses the machine's memory
		g.MemoryMiB = size
	}
	return g, nil
}

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
