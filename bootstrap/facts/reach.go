package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/printable"
)

// Endpoint is where a TCP connection may go to.
type Endpoint struct {
	Host string // name or address
	Port uint16
}

// String is how the script that tries endpoints reads and prints them.
func (e Endpoint) String() string { return fmt.Sprintf("%s %d", e.Host, e.Port) }

// Reach is what became of an attempt to connect.
type Reach string

// What an attempt may show.
const (
	Open        Reach = "open"
	Refused     Reach = "refused"    // the machine answers and nothing listens
	Silent      Reach = "silent"     // no answer in time: the machine is off, or something drops the packets
	Unresolved  Reach = "unresolved" // the name has no address
	Unreachable Reach = "unreachable"
)

// ByProxy returns what became of an attempt to connect to the proxy by which the host's own apt would fetch from the endpoint; false:
// there is none, or it is open.
func (r Reach) ByProxy() (Reach, bool) {
	state, ok := strings.CutPrefix(string(r), "proxy-")
	return Reach(state), ok
}

// ParseReach reads what scripts/reach.sh printed.
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

// Offer is what a host's repository has of a minor version of Kubernetes.
type Offer struct {
	Minor    string            // 1.36
	Versions []catalog.Version // newest first, of which there is all that a node needs; none: Why says why
	Why      string
}

const longestWhy = 300 // bytes of what apt said

// ParseOffer reads what scripts/reach.sh printed of the repository; nil: the host was not asked, or told nothing.
func ParseOffer(output []byte) (*Offer, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return nil, err
	}
	var offer *Offer
	for _, line := range a["offers"] {
		minor, rest, _ := strings.Cut(line, " ")
		word, rest, _ := strings.Cut(rest, " ")
		offer = &Offer{Minor: minor}
		switch {
		case !catalog.IsMinor(minor):
			return nil, bad("offers", line, fmt.Errorf("want a minor version"))
		case word == "no":
			offer.Why = printable.Short(rest, longestWhy)
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

// Containerd is the one that apt would install on a host that has none.
type Containerd struct {
	Version string // of the package; empty: nobody knows
	Why     string // Docker's repository has none, so that it is the distribution's
}

// ParseContainerd reads what scripts/reach.sh printed of containerd; zero: the host was not asked.
func ParseContainerd(output []byte) (Containerd, error) {
	a, err := split(output, "kgpu-reach=1")
	if err != nil {
		return Containerd{}, err
	}
	version, why, _ := strings.Cut(a.first("containerd"), " ")
	if strings.Trim(version, "+-.:~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return Containerd{}, bad("containerd", version, fmt.Errorf("want a package's version"))
	}
	return Containerd{strings.TrimPrefix(version, "-"), printable.Short(why, longestWhy)}, nil
}

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
