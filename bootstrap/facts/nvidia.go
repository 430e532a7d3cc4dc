package facts

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// NVIDIA is a host's cards and its driver for them.
type NVIDIA struct {
	Cards    []Card
	Switches int // NVSwitches
	Bridges  int // functions of ConnectX through which NVLink 5 switches are managed
	Fabric   []CardFabric
	Loaded   string // version of the kernel module that runs; empty: none
	Module   string // version of the one that a boot would load; empty: none
	Library  string // version of libnvidia-ml; empty: none
	// Files are where the host keeps what a container needs of the driver, by the name a program looks for: libcuda.so.1 →
	// /usr/lib/nvidia-375/libcuda.so.375.82. Symbolic links are followed.
	Files   map[string]string
	Runfile bool // an installer outside of the package manager put it there
	Nouveau Nouveau
	Seen    []GPU // what nvidia-smi lists
	SMI     int   // exit status of nvidia-smi: 124 when it hangs; zero also where there is none

	Features map[string]string // node labels that gpu-feature-discovery wants for the host; nil: it does not run
}

// Card is a graphics processor on the PCI bus.
type Card struct {
	Address string // 0000:17:00.0
	ID      string // PCI device ID, four hexadecimal digits
	Driver  string // kernel driver it is bound to: nvidia, nouveau, vfio-pci; empty: none
}

// Nouveau is the state of the kernel's own driver for NVIDIA's cards.
type Nouveau struct {
	Loaded bool
	Users  int
}

// GPU is a card as nvidia-smi tells of it.
type GPU struct {
	UUID, Name string
	Address    string // as Card has it
	MemoryMiB  int
	MIG        bool // it offers instances of itself only
	Instances  []Instance
}

// Instance is a part of a card that was cut by MIG.
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
		c, err := cardFabric(line)
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
			continue // of a card that is sick: to the others it is as good as lost
		}
		if err != nil {
			return bad("gpu", line, err)
		}
		n.Seen = append(n.Seen, g)
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

// Features reads what gpu-feature-discovery writes: a line key=value for each label. Without lines it is nil.
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

// profile is the name of a kind of instance, such as 1g.5gb, 1c.2g.10gb, 1g.10gb+me: it becomes part of a resource's name.
var profile = regexp.MustCompile(`^[0-9][0-9a-z.+-]{0,40}$`)

// instances reads lines of `nvidia-smi -L`: a card and below it its instances, such as
// "  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-…)".
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
			for i := range n.Seen {
				if n.Seen[i].UUID == uuid {
					of = &n.Seen[i]
				}
			}
		case f[0] == "MIG" && of != nil && profile.MatchString(f[1]):
			of.Instances = append(of.Instances, Instance{UUID: uuid, Profile: f[1]})
		}
	}
}

// gpu reads a line of nvidia-smi, such as "GPU-8f0e…, NVIDIA A100-SXM4-40GB, 00000000:17:00.0, 40960 MiB, Disabled". Drivers before 450 know nothing of MIG.
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
	if size, err := strconv.Atoi(strings.TrimSuffix(f[3], " MiB")); err == nil { // "[N/A]" where memory is the machine's
		g.MemoryMiB = size
	}
	return g, nil
}

// CardFabric is how far a card has come with its NVLink fabric, as nvidia-smi -q tells it.
type CardFabric struct {
	Address string // as nvidia-smi writes it: 00000000:17:00.0
	State   string // Completed, In Progress, Not Started; N/A: it has none
	Status  string // of a state that is Completed: Success, or what went wrong
}

// Ready reports whether programs can use the card: it has its place in the fabric, or needs none.
func (c CardFabric) Ready() bool {
	return c.State == "N/A" || c.State == "Completed" && c.Status == "Success"
}

// String is the state as nvidia-smi has it.
func (c CardFabric) String() string { return fmt.Sprintf("State: %s, Status: %s", c.State, c.Status) }

// FabricWaits says of the cards that are not ready how far they are; none: they all are, or nvidia-smi told nothing of it.
func (n NVIDIA) FabricWaits() []string {
	var out []string
	for _, c := range n.Fabric {
		if !c.Ready() {
			out = append(out, fmt.Sprintf("card %s: fabric %s", c.Address, c))
		}
	}
	return out
}

// cardFabric reads a line of facts.sh: address, state and status with tabs between them.
func cardFabric(line string) (CardFabric, error) {
	f := strings.Split(line, "\t")
	if len(f) != 3 {
		return CardFabric{}, bad("fabric", line, fmt.Errorf("want three fields"))
	}
	return CardFabric{Address: f[0], State: f[1], Status: f[2]}, nil
}
