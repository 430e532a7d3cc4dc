package doctor

import (
	"fmt"
	"net"
	"net/netip"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// cannotGrow finds a cluster whose nodes use the address of its control plane, although a new cluster of its version
// gets a name.
func cannotGrow(s *examinee) []string {
	c := s.f.ControlPlane
	if c == nil {
		return nil
	}
	version, err := catalog.ParseVersion(c.Version)
	if minor, ok := catalog.Kubernetes(version.Minor); err != nil || !ok || !minor.Has(catalog.APIName) {
		return nil
	}
	host, _, _ := net.SplitHostPort(c.Endpoint)
	at, err := netip.ParseAddr(host)
	if err != nil || !machine.HasAddress(s.f, at) { // another machine's address is a load balancer's or a virtual one
		return nil
	}
	return []string{"the cluster's kubeconfigs lead to https://" + c.Endpoint}
}

// apiNameLost finds a node that does not resolve the API server's name to its address.
func apiNameLost(s *examinee) []string {
	to := s.f.Names[s.api.name]
	switch {
	case !s.member || s.api.name == "":
		return nil
	case len(to) == 0:
		return []string{"the host does not resolve " + s.api.name}
	case len(to) > 1 || to[0] != s.api.at:
		return []string{fmt.Sprintf("%s leads to %s, and the control plane is %s", s.api.name, to[0], s.api.at)}
	}
	return nil
}
