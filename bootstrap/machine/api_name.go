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
// leads to its only control plane or to the virtual address of several, by a line in every host's /etc/hosts: no server has to know the name.
// Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/create-cluster-kubeadm/.

// apiDomain is the domain of the API server names that kgpu makes up. ICANN reserved .internal for private use, so no
// public server resolves it.
const apiDomain = "kgpu.internal"

// APIName returns the API server's name that kgpu keeps in every host's /etc/hosts. It is empty if the inventory
// names an endpoint for a new cluster, or if an existing cluster was made without such a name. Like all methods in
// this file, it needs a Set with a First control plane.
func (s *Set) APIName() string {
	if s.clusterKept() || s.Restores != "" {
		if name, _ := s.runningEndpoint(); OwnAPIName(name) {
			return name
		}
		return ""
	}
	if s.Inventory.Kubernetes.ControlPlaneEndpoint != "" || !s.Minor.Has(catalog.APIName) {
		return ""
	}
	sum := sha256.Sum256([]byte(s.Inventory.Cluster + "\n" + s.APIAddress().String()))
	return fmt.Sprintf("api-%x.%s.%s", sum[:3], s.Inventory.Cluster, apiDomain)
}

// clusterKept reports whether the cluster exists and is kept. A control plane whose kubeadm init was interrupted counts if
// it has an endpoint: init may have finished on its own, and the endpoint stays the same either way.
func (s *Set) clusterKept() bool {
	c := s.First.Facts.ControlPlane
	return c != nil && (c.Endpoint != "" || s.Verdict(s.First).Membership != Rejoin)
}

// runningEndpoint returns the DNS name and the port by which the nodes of an existing cluster reach its API server.
// Both are empty if there is no such cluster, or if its nodes use an IP address.
func (s *Set) runningEndpoint() (name, port string) {
	endpoint := s.Restores
	if endpoint == "" {
		if !s.clusterKept() {
			return "", ""
		}
		endpoint = s.First.Facts.ControlPlane.Endpoint
	}
	name, port, err := net.SplitHostPort(endpoint)
	if _, isAddress := netip.ParseAddr(name); err != nil || isAddress == nil {
		return "", ""
	}
	return name, port
}

// ControlPlaneEndpoint is the name:port by which the nodes reach the API server: that of the existing cluster, or,
// for a new one, the inventory's endpoint or kgpu's APIName. It is empty if the nodes use an IP address.
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

// APIAddress is the address that the API server's name resolves to: the virtual one, or that of the only control plane.
func (s *Set) APIAddress() netip.Addr {
	if v := s.Inventory.Kubernetes.VirtualIP; v.IsValid() {
		return v
	}
	return s.First.NodeAddress()
}

// Endpoint is the host:port by which the kubelets reach the API server.
func (s *Set) Endpoint() string {
	if e := s.ControlPlaneEndpoint(); e != "" {
		return e
	}
	return netip.AddrPortFrom(s.APIAddress(), catalog.APIPort).String()
}

// LeadsToAPI reports whether the host resolves the name to the API server's address and to no other.
func (s *Set) LeadsToAPI(f *facts.Host, name string) bool {
	to := f.Names[name]
	return len(to) > 0 && !slices.ContainsFunc(to, func(a netip.Addr) bool { return a != s.APIAddress() })
}

// ownAPIName matches the names that APIName makes up.
var ownAPIName = regexp.MustCompile(`^api-[0-9a-f]{6}\.[a-z0-9]([-a-z0-9]*[a-z0-9])?\.kgpu\.internal$`)

// OwnAPIName reports whether kgpu made up this API server name. Only hosts of its cluster resolve it.
func OwnAPIName(name string) bool { return ownAPIName.MatchString(name) }
