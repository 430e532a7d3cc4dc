package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Endpoint is a TCP host and port.
type Endpoint struct {
	Host string // name or address
	Port uint16
}

// String is the format that scripts/reach.sh reads and prints.
func (e Endpoint) String() string { return fmt.Sprintf("%s %d", e.Host, e.Port) }

// Reach is the result of an attempt to connect.
type Reach string

const (
	Open        Reach = "open"
	Refused     Reach = "refused"    // the machine answers, and nothing listens
	Silent      Reach = "silent"     // no answer in time: the machine is off, or something drops the packets
	Unresolved  Reach = "unresolved" // the name does not resolve
	Unreachable Reach = "unreachable"
)

// ByProxy returns the result of connecting to the proxy that the host's apt uses for the endpoint; false if apt uses
// none or the proxy is reachable.
func (r Reach) ByProxy() (Reach, bool) {
	state, ok := strings.CutPrefix(string(r), "proxy-")
	return Reach(state), ok
}

// ParseReach reads the output of scripts/reach.sh.
func ParseReach(output []byte) (map[Endpoint]Reach, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return nil, err
	}
	states := map[Endpoint]Reach{}
	for _, line := range a["reach"] {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, bad("reach", line, fmt.Errorf("want three words"))
		}
		port, err := strconv.ParseUint(f[1], 10, 16)
		if err != nil {
			return nil, bad("reach", line, err)
		}
		states[Endpoint{f[0], uint16(port)}] = Reach(f[2])
	}
	return states, nil
}

// AvailableVersions is what a host's package repository has of a Kubernetes minor.
type AvailableVersions struct {
	Minor    string            // such as 1.36
	Versions []catalog.Version // complete ones, with all packages that a node needs, newest first; if empty, Why says why
	Why      string
}

const maxWhy = 300 // bytes of apt's message that are kept

// ParseAvailableVersions reads what scripts/reach.sh printed of the repository; nil if the host was not asked or did not answer.
func ParseAvailableVersions(output []byte) (*AvailableVersions, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return nil, err
	}
	var offer *AvailableVersions
	for _, line := range a["offers"] {
		minor, rest, _ := strings.Cut(line, " ")
		word, rest, _ := strings.Cut(rest, " ")
		offer = &AvailableVersions{Minor: minor}
		switch {
		case !catalog.IsMinor(minor):
			return nil, bad("offers", line, fmt.Errorf("want a minor version"))
		case word == "no":
			offer.Why = printable.Short(rest, maxWhy)
			continue
		case word != "yes" || rest == "":
			return nil, bad("offers", line, fmt.Errorf("want yes and versions, or no"))
		}
		for _, word := range strings.Fields(rest) {
			v, err := catalog.ParseVersion(word)
			if err == nil && v.MinorString() != minor {
				err = fmt.Errorf("%s is no patch of %s", v, minor)
			}
			if err != nil {
				return nil, bad("offers", line, err)
			}
			offer.Versions = append(offer.Versions, v)
		}
		slices.SortFunc(offer.Versions, func(v, w catalog.Version) int { return w.Compare(v) })
	}
	return offer, nil
}

// Containerd is the containerd package that apt would install on a host that has none.
type Containerd struct {
	Version string // of the package; empty if unknown
	Why     string // set if Docker's repository has none, so that the distribution's is taken
}

// ParseContainerd reads what scripts/reach.sh printed of containerd; zero if the host was not asked.
func ParseContainerd(output []byte) (Containerd, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return Containerd{}, err
	}
	version, why, _ := strings.Cut(a.first("containerd"), " ")
	if strings.Trim(version, "+-.:~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return Containerd{}, bad("containerd", version, fmt.Errorf("want a package's version"))
	}
	return Containerd{strings.TrimPrefix(version, "-"), printable.Short(why, maxWhy)}, nil
}

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
