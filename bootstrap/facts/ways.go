package facts

import (
	"fmt"
	"strings"
)

// Way is apt's answer to one way of installing a driver with prebuilt modules, see machine.WayBuilt.
type Way struct {
	Name   string // machine.WayBuilt, WayNewer, WayDKMS or WayHeaders
	Kernel string // the kernel that its modules are for; empty if apt cannot go this way
	Why    string // why it cannot
}

// ParseWays reads the ways that scripts/reach.sh printed, in their order.
func ParseWays(output []byte) ([]Way, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return nil, err
	}
	var ways []Way
	for _, line := range a["way"] {
		name, rest, _ := strings.Cut(line, " ")
		word, rest, _ := strings.Cut(rest, " ")
		switch {
		case word == "yes" && rest != "":
			ways = append(ways, Way{Name: name, Kernel: rest})
		case word == "no":
			ways = append(ways, Way{Name: name, Why: rest})
		default:
			return nil, bad("way", line, fmt.Errorf("want yes and a kernel, or no"))
		}
	}
	return ways, nil
}
