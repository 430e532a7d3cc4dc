package machine

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
)

// A cluster whose nodes know its API server by the address of one control plane can never have another control plane: kubeadm writes
// the controlPlaneEndpoint into certificates and kubeconfigs when it makes the cluster. So a new cluster gets a name, which
// leads to its only control plane for now, by a line in every host's /etc/hosts: no server has to know the name.
// Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/create-cluster-kubeadm/.

// apiDomain ends the names that kgpu makes up. ICANN has set internal aside for private use: no public server resolves it.
const apiDomain = "kgpu.internal"

// APIName is the name of the API server that kgpu keeps in every host's /etc/hosts. It is empty where the inventory names an
// endpoint for a new cluster, which its owner looks after, and for a cluster that was made without: that stays as it is.
// This and what follows from it is of sets with a first control plane.
func (s *Set) APIName() string {
	if s.runs() {
		if name, _ := s.runningEndpoint(); OwnAPIName(name) {
			return name
		}
		return ""
	}
	if s.Inventory.Kubernetes.ControlPlaneEndpoint != "" || !s.Minor.NamesAPI() {
		return ""
	}
	sum := sha256.Sum256([]byte(s.Inventory.Cluster + "\n" + s.APIAddress().String()))
	return fmt.Sprintf("api-%x.%s.%s", sum[:3], s.Inventory.Cluster, apiDomain)
}

// runs reports whether there is a cluster that goes on as it is. One that is half made may have come to its end by itself, which its
// host finds out: it keeps its endpoint either way.
func (s *Set) runs() bool {
	c := s.First.Facts.ControlPlane
	return c != nil && (c.Endpoint != "" || s.Verdict(s.First).Membership != Rejoin)
}

// runningEndpoint is the name and the port by which the nodes of a cluster that goes on know its API server; empty: they know it by
// an address.
func (s *Set) runningEndpoint() (name, port string) {
	if !s.runs() {
		return "", ""
	}
	name, port, err := net.SplitHostPort(s.First.Facts.ControlPlane.Endpoint)
	if _, isAddress := netip.ParseAddr(name); err != nil || isAddress == nil {
		return "", ""
	}
	return name, port
}

// ControlPlaneEndpoint is the name, with a port, by which the nodes know the API server: a cluster keeps the one that it was made
// with, a new one gets the inventory's, or else kgpu's own. It is empty where they know an address.
func (s *Set) ControlPlaneEndpoint() string {
	if name, port := s.runningEndpoint(); name != "" {
		return net.JoinHostPort(name, port)
	}
	if e := s.Inventory.Kubernetes.ControlPlaneEndpoint; e != "" {
		return e
	}
	if name := s.APIName(); name != "" {
		return net.JoinHostPort(name, strconv.Itoa(catalog.APIPort))
	}
	return ""
}

// APIAddress is where the name of the API server leads.
func (s *Set) APIAddress() netip.Addr { return s.First.NodeAddress() }

// Endpoint is where the kubelets reach the API server.
func (s *Set) Endpoint() string {
	if e := s.ControlPlaneEndpoint(); e != "" {
		return e
	}
	return netip.AddrPortFrom(s.APIAddress(), catalog.APIPort).String()
}

// LeadsToAPI reports whether a name leads the host to the control plane, and nowhere else.
func (s *Set) LeadsToAPI(f *facts.Host, name string) bool {
	to := f.Names[name]
	return len(to) > 0 && !slices.ContainsFunc(to, func(a netip.Addr) bool { return a != s.APIAddress() })
}

var ownAPIName = regexp.MustCompile(`^api-[0-9a-f]{6}\.[a-z0-9]([-a-z0-9]*[a-z0-9])?\.kgpu\.internal$`)

// OwnAPIName reports whether the name is one that kgpu makes up for API servers: its clusters' hosts alone resolve it.
func OwnAPIName(name string) bool { return ownAPIName.MatchString(name) }
