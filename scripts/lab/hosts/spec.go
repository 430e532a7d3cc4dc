package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/network"
)

// Spec is what a host is from its creation to its end.
type Spec struct {
	Name   string `json:"name"`
	Base   string `json:"base"`   // kind of its base system
	BaseID string `json:"baseId"` // which of them: an overlay needs the one it was made for
	Number byte   `json:"number"` // last part of its address
	// Inner hosts are on the private segment: only the bastion's sshd leads there.
	Inner    bool `json:"inner,omitempty"`
	Bastion  bool `json:"bastion,omitempty"`
	Password bool `json:"password,omitempty"` // sudo wants a password
	// Disks says that / and /var are file systems of their own, which lose at a power cut what nobody synced.
	Disks bool `json:"disks,omitempty"`
	// Cards are the host's NVIDIA cards; most hosts have none.
	Cards *Cards `json:"cards,omitempty"`
}

const (
	controlPlane = 10
	firstWorker  = 11
	// MaxWorkers is how many workers have addresses; the next are for other kinds.
	MaxWorkers = 20
)

// extras are the hosts that `up --with` adds, by the word that asks for them.
var extras = map[string][]Spec{
	"ubuntu":   {{Name: "ubuntu1", Base: "noble", Number: 31}},
	"password": {{Name: "password1", Number: 41, Password: true}},
	"bastion":  {{Name: "bastion1", Number: 51, Bastion: true}, {Name: "inner1", Number: 10, Inner: true}},
}

// Extras lists the words that Wanted knows.
func Extras() []string {
	words := make([]string, 0, len(extras))
	for w := range extras {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// Wanted lists the hosts of a lab with cp1, this many workers and these
// extras, all on the base kind unless the host has one of its own.
func Wanted(workers int, kind string, with []string) ([]Spec, error) {
	if workers < 0 || workers > MaxWorkers {
		return nil, fmt.Errorf("%d workers: want 0 to %d", workers, MaxWorkers)
	}
	specs := []Spec{{Name: "cp1", Number: controlPlane}}
	for i := range workers {
		specs = append(specs, Spec{Name: "w" + strconv.Itoa(i+1), Number: byte(firstWorker + i)})
	}
	for _, word := range with {
		more, ok := extras[word]
		if !ok {
			return nil, fmt.Errorf("no hosts called %q: want some of %s", word, strings.Join(Extras(), ", "))
		}
		specs = append(specs, more...)
	}
	for i := range specs {
		if specs[i].Base == "" {
			specs[i].Base = kind
		}
	}
	return specs, nil
}

// cables are the host's network interfaces, the one with its address first.
func (s Spec) cables(n network.Network) []network.Cable {
	if s.Inner {
		return []network.Cable{n.Cable(s.Name, "eth0", network.At(n.InnerPrefix(), s.Number), n.InnerGateway())}
	}
	cables := []network.Cable{n.Cable(s.Name, "eth0", network.At(n.Prefix(), s.Number), n.Gateway())}
	if s.Bastion {
		cables = append(cables, n.Cable(s.Name, "eth1", n.InnerGateway(), netip.Addr{}))
	}
	return cables
}
