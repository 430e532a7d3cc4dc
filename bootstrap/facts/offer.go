package facts

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/printable"
)

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
