package facts

import (
	"fmt"
	"strings"
)

// Way is what apt said of a way to install a driver whose modules the distribution builds.
type Way struct {
	Name   string // as plan calls it
	Kernel string // the one that its modules are for; empty: it is no way
	Why    string // why it is none
}

// ParseWays reads what scripts/reach.sh printed of ways, in their order.
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
