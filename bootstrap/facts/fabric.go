package facts

import (
	"fmt"
	"strings"
)

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
