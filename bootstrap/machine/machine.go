// Package machine judges what machines are: an entry of the inventory with what its host told, and all of them together. It plans
// nothing, and is pure.
package machine

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// Machine is a host of the inventory, and what it told.
type Machine struct {
	inventory.Host
	Facts *facts.Host   // nil: it did not tell
	Skew  time.Duration // how far its clock is from the operator's, corrected by half the round trip
}

// NodeName is the name of the host's node object: the inventory's, or the machine's own host name.
func (m Machine) NodeName() string {
	if m.Name != "" {
		return m.Name
	}
	return strings.ToLower(m.Facts.Hostname)
}

// NodeAddress is the host's address inside the cluster: privateAddress, else the address of the inventory, else the one that
// its kubelet was given or, of a host that is no node yet, that SSH reached, each when it is one of the host's own, else the
// host's first global IPv4 address. It is zero when there is none.
func (m Machine) NodeAddress() netip.Addr {
	f := m.Facts
	if m.PrivateAddress.IsValid() {
		return m.PrivateAddress
	}
	if a, err := netip.ParseAddr(m.Address); err == nil && HasAddress(f, a) {
		return a
	}
	a := f.Reached
	if f.Kubelet != nil {
		a = f.NodeIP // a node has its address, however it is reached now
	}
	if a.Is4() && !a.IsLoopback() && HasAddress(f, a) {
		return a
	}
	for _, a := range f.Addresses {
		if ip := a.Prefix.Addr(); ip.Is4() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			return ip
		}
	}
	return netip.Addr{}
}

// HasAddress reports whether one of the host's interfaces has the address.
func HasAddress(f *facts.Host, a netip.Addr) bool {
	return slices.ContainsFunc(f.Addresses, func(x facts.Address) bool { return x.Prefix.Addr() == a })
}

// nodeName is what Kubernetes takes for the name of a node. Source:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const maxNodeName = 253

// ValidNodeName tells whether a node can have this name.
func ValidNodeName(name string) bool {
	return len(name) <= maxNodeName && nodeName.MatchString(name) && name != "localhost"
}

// InCluster reports whether the host is a node of a cluster.
func (m Machine) InCluster() bool { return m.Facts.Kubelet != nil || m.Facts.ControlPlane != nil }

// Recorded is what the ledger says of a host's membership.
func (m Machine) Recorded() facts.Record {
	if m.Facts.Recorded == nil {
		return facts.Record{}
	}
	return *m.Facts.Recorded
}

// Unheld says which of the packages that the host has may be replaced by an upgrade.
func (m Machine) Unheld(names []string) []string {
	var reasons []string
	for _, name := range names {
		if p, ok := m.Facts.Packages[name]; ok && !p.Held {
			reasons = append(reasons, name+" is not held")
		}
	}
	return reasons
}

// Missing are those of the packages that the host does not have.
func (m Machine) Missing(names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := m.Facts.Packages[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// NotRunning gives the reasons why a unit is not up, now and after a reboot.
func (m Machine) NotRunning(unit string) []string {
	u := m.Facts.Units[unit]
	switch {
	case u.Active != "active":
		return []string{unit + " is not running"}
	case u.Enabled != "enabled":
		return []string{unit + " is not enabled"}
	}
	return nil
}

// LabelOf looks up a label of a node; nil has none.
func LabelOf(n *facts.Node, key string) (string, bool) {
	if n == nil {
		return "", false
	}
	v, ok := n.Labels[key]
	return v, ok
}

// DrainedLabel is on nodes that scripts/lib/drain.sh has drained and not yet let in again. Their gpuLabel is "drained" while
// what holds cards by that label, the device plugin above all, has to be away.
const DrainedLabel = "kgpu.dev/drained"

// IsDrained reports whether kgpu drained a node and did not let it in again; nil is none.
func IsDrained(n *facts.Node) bool {
	_, ok := LabelOf(n, DrainedLabel)
	return ok
}
