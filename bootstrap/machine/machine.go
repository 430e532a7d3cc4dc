// Package machine judges machines, each an inventory host with its facts, and all machines of a cluster together. It
// is pure and plans nothing.
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

// Machine is a host of the inventory with the facts that were gathered from it.
type Machine struct {
	inventory.Host
	Facts *facts.Host   // nil if none were gathered
	Skew  time.Duration // how far its clock is ahead of the operator's
}

// NodeName is the name of the host's node object: the inventory's, or the machine's own host name.
func (m Machine) NodeName() string {
	if m.Name != "" {
		return m.Name
	}
	return strings.ToLower(m.Facts.Hostname)
}

// NodeAddress is the host's IPv4 address inside the cluster: the inventory's privateAddress or address, else, if it
// belongs to the host, the kubelet's --node-ip (of a node) or the address that SSH reached (of another host), else
// the first global IPv4 address. It is zero if there is none.
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
		a = f.NodeIP // a node keeps its address, however it is reached now
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

// maxNodeName is the longest name of a node, in bytes.
const maxNodeName = 253

// ValidNodeName tells whether a node can have this name.
func ValidNodeName(name string) bool {
	return len(name) <= maxNodeName && nodeName.MatchString(name) && name != "localhost"
}

// InCluster reports whether the host has a kubelet or a control plane of some cluster.
func (m Machine) InCluster() bool { return m.Facts.Kubelet != nil || m.Facts.ControlPlane != nil }

// Recorded is what the ledger says of the host's membership; zero if it says nothing.
func (m Machine) Recorded() facts.Record {
	if m.Facts.Recorded == nil {
		return facts.Record{}
	}
	return *m.Facts.Recorded
}

// Unheld returns which of the installed packages are not held, so that an upgrade may replace them.
func (m Machine) Unheld(names []string) []string {
	var reasons []string
	for _, name := range names {
		if p, ok := m.Facts.Packages[name]; ok && !p.Held {
			reasons = append(reasons, name+" is not held")
		}
	}
	return reasons
}

// Missing returns which of the packages are not installed.
func (m Machine) Missing(names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := m.Facts.Packages[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// HasFirstOf reports whether the first package of any set is installed.
func (m Machine) HasFirstOf(sets [][]string) bool {
	return slices.ContainsFunc(sets, func(set []string) bool { return len(m.Missing(set[:1])) == 0 })
}

// NotRunning lists why a unit is not active or not enabled; empty if it is both.
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

// LabelOf looks up a label of a node. A nil node has none.
func LabelOf(n *facts.Node, key string) (string, bool) {
	if n == nil {
		return "", false
	}
	v, ok := n.Labels[key]
	return v, ok
}

// DrainedLabel is on nodes that scripts/lib/drain.sh has drained and kgpu has not uncordoned yet. While everything
// that holds GPUs by gpuLabel, above all the device plugin, must be away, gpuLabel is "drained".
const DrainedLabel = "kgpu.dev/drained"

// IsDrained reports whether kgpu drained the node and has not uncordoned it. A nil node is not drained.
func IsDrained(n *facts.Node) bool {
	_, ok := LabelOf(n, DrainedLabel)
	return ok
}
